"""Virtual time and one thread: strands that wait for each other, resumed in an order that a seed decides.

A strand is code that runs until it sleeps or waits; then another goes on. Nothing else ever switches, so a seed
repeats a run to the last step. Strands belong to processes. A process can be killed: each of its strands ends where
it stands, with :class:`Crash`, and nothing that it does on its way out has an effect. A process can be stopped for a
while (SIGSTOP): time goes on, its strands do not.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet


class Crash(BaseException):
    """The process that runs this was killed just now."""


class Stuck(AssertionError):
    """More steps than any run may take: something goes round for ever."""


class Process:
    """What is killed or stopped as a whole. Who is not *mortal* is not killed by a call of the store."""

    def __init__(self, name: str, mortal: bool = False) -> None:
        self.name, self.mortal = name, mortal
        self.alive = True
        self.stopped_until = 0.0
        self.strands: dict[int, Strand] = {}


class Strand:
    """One line of execution of a process."""

    __slots__ = ("ended", "green", "name", "number", "process", "ticket")

    def __init__(self, number: int, process: Process, name: str) -> None:
        self.number, self.process, self.name = number, process, name
        self.ticket = 0  # an entry in the agenda with another number is out of date
        self.green: Any = None
        self.ended = False


class Kernel:
    """The agenda: who goes on when. ``now`` is monotonic, in seconds from 0."""

    def __init__(self, seed: int, most_steps: int = 2_000_000) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.steps = 0
        self.strand: Strand | None = None
        self._most_steps = most_steps
        self._agenda: list[tuple[float, float, int, Strand]] = []
        self._numbers = 0
        self._hub: Any = None

    def spawn(self, process: Process, work: Callable[[], object], name: str) -> Strand:
        """Start *work* as a strand of *process*; it runs for the first time when its turn comes."""
        self._numbers += 1
        strand = Strand(self._numbers, process, name)
        strand.green = greenlet(lambda: self._live(strand, work))
        process.strands[strand.number] = strand
        self.wake(strand)
        return strand

    def run(self, until: float, enough: Callable[[], bool] = lambda: False) -> bool:
        """Let things happen until the time has come, nothing is left to do, or it is *enough* (True)."""
        self._hub = getcurrent()
        agenda, random = self._agenda, self.random.random
        while agenda:
            if enough():
                return True
            at, _, ticket, strand = agenda[0]
            if at > until:
                break
            heapq.heappop(agenda)
            if strand.ended or ticket != strand.ticket:
                continue
            if strand.process.alive and strand.process.stopped_until > at:
                heapq.heappush(agenda, (strand.process.stopped_until, random(), ticket, strand))
                continue
            self.now = max(self.now, at)
            self._step(strand)
        self.now = max(self.now, until)
        return enough()

    def sleep(self, seconds: float) -> None:
        """The strand that runs goes on so much later."""
        self.wake(self._mine(), seconds)
        self.park()

    def park(self) -> None:
        """The strand that runs goes on when somebody wakes it. Raises Crash if its process is killed meanwhile."""
        strand = self._mine()
        self._hub.switch()
        if not strand.process.alive:
            raise Crash

    def wake(self, strand: Strand, seconds: float = 0.0) -> None:
        """Let *strand* go on in so many seconds, whatever was planned for it before."""
        strand.ticket += 1
        heapq.heappush(self._agenda, (self.now + seconds, self.random.random(), strand.ticket, strand))

    def kill(self, process: Process) -> None:
        """End all of *process*. A strand that kills its own process does not come back from here."""
        process.alive = False
        for strand in process.strands.values():
            if strand is not self.strand:
                self.wake(strand)
        if self.strand is not None and self.strand.process is process:
            raise Crash

    def check_alive(self) -> None:
        """Raises Crash in a strand whose process was killed: it must not do anything any more."""
        if not self._mine().process.alive:
            raise Crash

    def _mine(self) -> Strand:
        assert self.strand is not None, "only a strand can wait"
        return self.strand

    def _step(self, strand: Strand) -> None:
        self.steps += 1
        if self.steps > self._most_steps:
            raise Stuck(f"{self._most_steps} steps, and no end: {strand.process.name}/{strand.name} goes round")
        self.strand = strand
        strand.green.parent = self._hub
        try:
            strand.green.switch()
        finally:
            self.strand = None

    def _live(self, strand: Strand, work: Callable[[], object]) -> None:
        try:
            if strand.process.alive:
                work()
        except Crash:
            pass
        finally:
            strand.ended = True
            strand.process.strands.pop(strand.number, None)


class Signal:
    """What strands wait for, until it is set: as :class:`threading.Event`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._waiting: deque[Strand] = deque()
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        """Wake whoever waits, now or later."""
        self._set = True
        self.pulse()

    def pulse(self) -> None:
        """Wake whoever waits now."""
        while self._waiting:
            self._kernel.wake(self._waiting.popleft())

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None, *others: Signal) -> bool:
        """Wait until it is set, one of the *others* pulses, or the time is over (False)."""
        kernel = self._kernel
        kernel.check_alive()
        if not self._set:
            strand = kernel._mine()
            lines = [one._waiting for one in (self, *others)]
            for line in lines:
                line.append(strand)
            if timeout is not None:
                kernel.wake(strand, timeout)
            try:
                kernel.park()
            finally:
                for line in lines:
                    with suppress(ValueError):
                        line.remove(strand)
        return self._set
