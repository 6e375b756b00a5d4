"""The hands of a worker: threads for plain functions, one event loop for async ones.

A crew takes claimed jobs and rings the bell when one has ended. It never talks to the store.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Protocol

import msgspec

from treppe.job import Claim, Kind, Outcome
from treppe.settle import Rules

log = logging.getLogger("treppe.worker")

PREFETCH_FOR = 0.05  # seconds of work that may lie ready beside the running jobs
MAX_PREFETCH = 500
LINGER = 0.002
SHORT = 0.001  # mean seconds of a job below which one thread works off several in a row


class Handler(msgspec.Struct, frozen=True):
    """What to do with the jobs of one task. ``run`` is a plain function, or async with ``in_loop``.

    ``timeout`` is the time limit of one run in seconds.
    """

    run: Callable[[Run], Outcome] | Callable[[Run], Awaitable[Outcome]]
    rules: Rules = Rules()
    timeout: float | None = None
    in_loop: bool = False


class Notes(Protocol):
    """The one thing a running job may ask of the store."""

    def note(self, claim: Claim, name: str, value: bytes | None) -> bool: ...


class Run(msgspec.Struct, eq=False):
    """One job in hand. ``started`` is a monotonic time, None while it lies ready."""

    claim: Claim
    handler: Handler
    store: Notes
    not_before: float = 0.0
    started: float | None = None
    ended: float = 0.0
    outcome: Outcome | None = None
    abandoned: bool = False

    def note(self, name: str, value: bytes | None) -> bool:
        """Write a note of this job; False when the claim is lost."""
        return self.store.note(self.claim, name, value)

    def overdue(self, now: float) -> bool:
        """True when it has run for longer than its time limit."""
        limit = self.handler.timeout
        return limit is not None and self.started is not None and now - self.started > limit


class Ended:
    """Where ended runs lie until the engine collects them; ringing the bell wakes the engine.

    While more short jobs lie ready the bell waits up to ``LINGER``: an engine that wakes for each of them would
    fight their thread for the interpreter's lock at every row of its transaction.
    """

    def __init__(self, bell: threading.Event) -> None:
        self._runs: deque[Run] = deque()
        self._bell = bell
        self._ring_at = 0.0

    def add(self, run: Run, outcome: Outcome, more_ready: bool = False) -> None:
        """Called by whoever ran the job."""
        run.outcome = outcome
        run.ended = now = time.monotonic()
        self._runs.append(run)
        if not more_ready or now >= self._ring_at:
            self._ring_at = now + LINGER
            self._bell.set()

    def collect(self) -> list[Run]:
        """Everything that has ended so far."""
        found = []
        while self._runs:
            found.append(self._runs.popleft())
        self._ring_at = time.monotonic() + LINGER
        return found


class Crew:
    """What both kinds of hands share: how many jobs they hold, and how long one takes."""

    def __init__(self, size: int, ended: Ended) -> None:
        self.size = size
        self.held = 0
        self._ended = ended
        self._mean = 1.0  # seconds a job takes, moving average

    def free(self) -> int:
        """Jobs that could start right now."""
        return max(0, self.size - self.held)

    def room(self) -> int:
        """Jobs worth claiming: the free hands, and for short jobs a few that lie ready."""
        ready = min(MAX_PREFETCH, int(self.size * PREFETCH_FOR / max(self._mean, 1e-6)))
        return max(0, self.size + ready - self.held)

    def take(self, runs: list[Run]) -> None:
        """Start these jobs as hands become free."""
        self.held += len(runs)

    def let_go(self, runs: Iterable[Run]) -> None:
        """The engine has seen the end of these jobs."""
        for run in runs:
            self.held -= 1
            if run.started is not None:
                self._mean += 0.05 * (run.ended - run.started - self._mean)

    def return_unstarted(self, queue: str | None = None) -> None:
        """Give back what was never started, of one queue or of all."""

    def give_up(self, run: Run, outcome: Outcome) -> None:
        """End a run from outside: its time is over."""
        raise NotImplementedError

    def close(self) -> None:
        """End the hands."""


class ThreadCrew(Crew):
    """Plain functions, each in one of ``size`` threads. A thread that hangs is abandoned and replaced.

    Ready jobs lie in one line; a thread that takes a job wakes the next thread if more lie ready, unless jobs
    are so short that handing them over would cost more than doing them.
    """

    def __init__(self, size: int, ended: Ended) -> None:
        super().__init__(size, ended)
        self._ready: deque[Run] = deque()
        self._wake: SimpleQueue[bool] = SimpleQueue()  # False ends a thread
        self._hired = 0

    def take(self, runs: list[Run]) -> None:
        super().take(runs)
        while self._hired < min(self.size, self.held):
            self._hire()
        self._ready.extend(runs)
        self._wake.put(True)

    def nudge(self) -> bool:
        """Wake one more thread if jobs lie ready; True if any do."""
        if self._ready:
            self._wake.put(True)
        return bool(self._ready)

    def return_unstarted(self, queue: str | None = None) -> None:
        for run in list(self._ready):
            if queue in (None, run.claim.queue):
                with suppress(ValueError):  # a thread was faster
                    self._ready.remove(run)
                    self._ended.add(run, RELEASED)

    def give_up(self, run: Run, outcome: Outcome) -> None:
        run.abandoned = True
        self._ended.add(run, outcome)
        self._hire()

    def close(self) -> None:
        for _ in range(self._hired):
            self._wake.put(False)

    def _hire(self) -> None:
        self._hired += 1
        threading.Thread(target=self._work, name=f"treppe-job-{self._hired}", daemon=True).start()

    def _work(self) -> None:
        while self._wake.get():
            try:
                while True:
                    self._run_one(self._ready.popleft())
            except IndexError:
                continue
            except _AbandonedError:
                return

    def _run_one(self, run: Run) -> None:
        if self._ready and self._mean > SHORT:
            self._wake.put(True)
        run.started = time.monotonic()
        if run.not_before > run.started:
            time.sleep(run.not_before - run.started)
        outcome = run_plainly(run)
        if run.abandoned:
            raise _AbandonedError
        self._ended.add(run, outcome, more_ready=bool(self._ready))


class _AbandonedError(Exception):
    """The engine has given this thread up and hired another."""


class LoopCrew(Crew):
    """Async functions, up to ``size`` at once in one event loop with a thread of its own."""

    def __init__(self, size: int, ended: Ended, factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        super().__init__(size, ended)
        self._loop = (factory or asyncio.new_event_loop)()
        self._tasks: dict[int, tuple[Run, asyncio.Task[None]]] = {}
        self._waiting: deque[Run] = deque()
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._thread: threading.Thread | None = None

    def on_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Await this in the loop before it ends."""
        self._closers.append(closer)

    def take(self, runs: list[Run]) -> None:
        super().take(runs)
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop.run_forever, name="treppe-loop", daemon=True)
            self._thread.start()
        self._loop.call_soon_threadsafe(self._start, runs)

    def return_unstarted(self, queue: str | None = None) -> None:
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._return_waiting, queue)

    def give_up(self, run: Run, outcome: Outcome) -> None:
        run.abandoned = True
        self._ended.add(run, outcome)
        self._loop.call_soon_threadsafe(self._cancel, run)

    def close(self) -> None:
        if self._thread is not None:
            asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
        self._loop.close()

    def _start(self, runs: list[Run]) -> None:
        self._waiting.extend(runs)
        while self._waiting and len(self._tasks) < self.size:
            run = self._waiting.popleft()
            self._tasks[id(run)] = (run, self._loop.create_task(self._work(run)))

    async def _work(self, run: Run) -> None:
        try:
            delay = run.not_before - time.monotonic()
            if delay > 0:
                await asyncio.sleep(delay)
            run.started = time.monotonic()
            outcome = await run_in_loop(run)
        except asyncio.CancelledError:
            outcome = Outcome(Kind.RELEASED, "cancelled", acted=None if run.started else False)
        finally:
            del self._tasks[id(run)]
        if not run.abandoned:
            self._ended.add(run, outcome, more_ready=self._mean < SHORT and bool(self._tasks))
        if self._waiting:
            self._start([])

    def _cancel(self, run: Run) -> None:
        if id(run) in self._tasks:
            self._tasks[id(run)][1].cancel()

    def _return_waiting(self, queue: str | None) -> None:
        for run in [run for run in self._waiting if queue in (None, run.claim.queue)]:
            self._waiting.remove(run)
            self._ended.add(run, RELEASED)
        for run, task in list(self._tasks.values()):
            if run.started is None and queue in (None, run.claim.queue):
                task.cancel()

    async def _finish(self) -> None:
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for closer in self._closers:
            await closer()


RELEASED = Outcome(Kind.RELEASED, "given back before it started", acted=False)


def run_plainly(run: Run) -> Outcome:
    """Call the handler; whatever it raises becomes an outcome, also what is no Exception."""
    try:
        outcome: Any = run.handler.run(run)
        return _checked(outcome)
    except BaseException as error:
        return _broken(error)


async def run_in_loop(run: Run) -> Outcome:
    """The same for an async handler, within its time limit."""
    limit = run.handler.timeout
    outcome: Any
    try:
        if limit is None:
            outcome = run.handler.run(run)
            return _checked(await outcome)
        async with asyncio.timeout(limit):
            outcome = run.handler.run(run)
            return _checked(await outcome)
    except TimeoutError:
        return timed_out(limit)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return _broken(error)


def timed_out(limit: float | None) -> Outcome:
    """The outcome of a run that took too long; nobody knows whether it acted."""
    return Outcome(Kind.FAILED, f"took longer than its time limit of {limit:g} s", acted=None)


def _checked(outcome: Any) -> Outcome:
    if isinstance(outcome, Outcome):
        return outcome
    return Outcome(Kind.FAILED, f"the handler returned {type(outcome).__name__} instead of an Outcome", acted=None)


def _broken(error: BaseException) -> Outcome:
    # A handler turns its own errors into outcomes; what arrives here slipped through it.
    log.error("a handler raised %s", type(error).__name__, exc_info=error)
    return Outcome(Kind.FAILED, f"{type(error).__name__}: {_text_of(error)}", acted=None)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its text could not be read)"
