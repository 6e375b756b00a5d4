"""Group commit for an event loop: concurrent callers share one commit, a lone one does not wait for others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from treppe.errors import SchemaMismatch, StoreBusy, StoreUnavailable
from treppe.intake.putting import Intake
from treppe.job import NewEvent, NewJob
from treppe.store.protocol import Put

log = logging.getLogger("treppe.intake")

Done = Callable[[Put | Exception], None]
"""Told in the loop how an entry ended."""

QUICK: Final = 0.002
"""Seconds that a commit may wait for the disk if it is to be called in the loop's own thread. Handing a batch to
another thread and back is dearer than that wait, as the two fight for the interpreter's lock."""

SLOW_FOR: Final = 1.0
"""Seconds in which a store that waited longer is called in a thread of its own."""


class Batcher:
    """Puts what came in one turn of the loop, and what came during the last commit, with one commit.

    Each put is answered only after the commit. A quick store that nobody else writes to is called at once, in the
    loop's thread; else in a thread of the batcher's own, so that the loop goes on. A batch has at most ``most``
    entries; when more than ``room`` entries or ``room_bytes`` bytes wait, or an entry waited longer than ``patience``
    seconds, it gets StoreUnavailable instead of waiting on. All calls come from one loop.
    """

    def __init__(
        self,
        intake: Intake,
        most: int = 100,
        room: int = 2000,
        room_bytes: int = 64 << 20,
        patience: float = 4.0,
    ) -> None:
        self._intake = intake
        self._most, self._room, self._room_bytes, self._patience = most, room, room_bytes, patience
        self._waiting: deque[_Entry] = deque()
        self._waiting_bytes = 0
        self._under_way: list[_Entry] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._late: asyncio.TimerHandle | None = None
        self._crowd = 0  # so many waited a turn ago
        self._closed = self._turn_comes = False
        self._pace = _Pace()
        self._thread = ThreadPoolExecutor(1, "treppe-intake")

    async def put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put:
        """Store all of this entry or nothing of it. Raises as :meth:`Intake.put` does, or StoreUnavailable.

        After StoreUnavailable it may still get stored; putting the same ids again adds nothing.
        """
        self._intake.check(jobs, events)
        future: asyncio.Future[Put] = asyncio.get_running_loop().create_future()

        def answer(end: Put | Exception) -> None:
            if future.done():
                return
            if isinstance(end, Put):
                future.set_result(end)
            else:
                future.set_exception(end)

        self.submit(jobs, events, answer)
        return await future

    def submit(self, jobs: Sequence[NewJob], events: Sequence[NewEvent], done: Done) -> None:
        """The same without a task, for jobs that keep every rule by the way they are made.

        Raises StoreUnavailable where there is no room; else *done* is called once, after this has returned.
        """
        self._admit(_Entry(jobs, events, done))
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._turn_comes, self._under_way = loop, False, []
        self._come_soon(loop)

    def close(self) -> None:
        """Commit what waits, then end the thread. Later puts raise StoreUnavailable."""
        self._closed = True
        self._thread.shutdown()
        while batch := self._next_batch():
            ends = self._put(batch)
            if self._loop is not None and not self._loop.is_closed():
                _tell(ends)

    def _admit(self, entry: _Entry) -> None:
        if self._closed:
            raise StoreUnavailable("the intake is closed: this process is shutting down")
        full = len(self._waiting) >= self._room or self._waiting_bytes + entry.size > self._room_bytes
        if full and self._waiting:
            raise StoreUnavailable(f"too much waits to be stored ({len(self._waiting)} entries). Try again in a moment")
        self._waiting.append(entry)
        self._waiting_bytes += entry.size

    def _come_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._turn_comes:
            self._turn_comes = True
            loop.call_soon(self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Put what has come, once a turn of the loop has brought nothing more and nothing is being put."""
        self._turn_comes = False
        if self._under_way or not self._waiting:
            return
        if self._crowd < len(self._waiting) < self._most:
            self._crowd = len(self._waiting)
            self._come_soon(loop)
            return
        batch = self._next_batch()
        self._crowd = 0
        ends = self._put_at_once(batch) if self._may_put_at_once() else None
        if ends is None:
            self._put_aside(batch, loop)
            return
        _tell(ends)
        if self._waiting:
            self._come_soon(loop)

    def _next_batch(self) -> list[_Entry]:
        batch: list[_Entry] = []
        size = 0
        while self._waiting and len(batch) < self._most and size < _BATCH_BYTES:
            batch.append(self._waiting.popleft())
            size += batch[-1].size
        self._waiting_bytes -= size
        return batch

    def _put_at_once(self, batch: list[_Entry]) -> list[_End] | None:
        """None where the store would have to wait for somebody, or finds fault with the batch."""
        began, busy = time.perf_counter(), time.thread_time()
        try:
            put = self._intake.store.try_put(*_together(batch))
        except Exception:  # whose fault it is will be found out aside
            return None
        self._pace.waited(time.perf_counter() - began - (time.thread_time() - busy))
        return _shared_out(batch, put) if put is not None else None

    def _put_aside(self, batch: list[_Entry], loop: asyncio.AbstractEventLoop) -> None:
        self._under_way = batch
        self._thread.submit(self._work, batch, loop)
        self._give_up_at(loop, batch[0].since + self._patience)

    def _work(self, batch: list[_Entry], loop: asyncio.AbstractEventLoop) -> None:
        ends = self._put(batch)
        with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(self._landed, ends, loop)

    def _landed(self, ends: list[_End], loop: asyncio.AbstractEventLoop) -> None:
        self._under_way = []
        if self._late is not None:
            self._late.cancel()
        if self._waiting and not self._may_put_at_once():
            self._put_aside(self._next_batch(), loop)  # first, so that the store works while we answer
        _tell(ends)
        if self._waiting:
            self._come_soon(loop)

    def _may_put_at_once(self) -> bool:
        return self._intake.store.can.puts_at_once and self._pace.is_quick()

    def _put(self, batch: list[_Entry]) -> list[_End]:
        """One call for all; where it fails, halves of them, until the one at fault stands alone."""
        try:
            return _shared_out(batch, self._intake.store.put(*_together(batch)))
        except Exception as error:
            if isinstance(error, StoreUnavailable | SchemaMismatch) and not isinstance(error, StoreBusy):
                return [(entry, _for_each(error)) for entry in batch]
            if len(batch) == 1:
                return [(batch[0], error)]
            half = len(batch) // 2
            return self._put(batch[:half]) + self._put(batch[half:])

    def _give_up_at(self, loop: asyncio.AbstractEventLoop, moment: float) -> None:
        self._late = loop.call_later(max(_GRACE, moment - time.monotonic()), self._give_up, loop)

    def _give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer those that have waited too long; called again as long as something is under way."""
        now = time.monotonic()
        young = now
        for entry in (*self._under_way, *self._waiting):
            if entry.since > now - self._patience + _GRACE:
                young = entry.since
                break
            _tell([(entry, StoreUnavailable(f"not on disk after {self._patience:g} s"))])
        self._give_up_at(loop, young + self._patience)


class _Pace:
    """How long the store has kept us waiting: a moving average, and a while of patience after it was long."""

    def __init__(self) -> None:
        self._average = 0.0
        self._slow_until = 0.0

    def is_quick(self) -> bool:
        return not self._slow_until or time.monotonic() > self._slow_until

    def waited(self, seconds: float) -> None:
        self._average += (seconds - self._average) / 8
        self._slow_until = 0.0
        if self._average > QUICK:
            self._average = QUICK / 2
            self._slow_until = time.monotonic() + SLOW_FOR


class _Entry:
    """What one caller wants stored, and whom to tell."""

    __slots__ = ("done", "events", "jobs", "since", "size")

    def __init__(self, jobs: Sequence[NewJob], events: Sequence[NewEvent], done: Done) -> None:
        self.jobs, self.events = jobs, events
        self.done: Done | None = done
        self.since = time.monotonic()
        self.size = sum([len(job.payload) for job in jobs]) + sum([len(event.body) for event in events])

    def tell(self, end: Put | Exception) -> None:
        done, self.done = self.done, None
        if done is not None:
            done(end)


_End = tuple[_Entry, Put | Exception]
_BATCH_BYTES: Final = 16 << 20
_GRACE: Final = 0.005  # two timers that are this close are one


def _tell(ends: list[_End]) -> None:
    """Whatever goes wrong with one that is told, the others of the batch hear of theirs."""
    for entry, end in ends:
        try:
            entry.tell(end)
        except Exception:
            log.exception("the end of a put could not be told")


def _together(batch: list[_Entry]) -> tuple[list[NewJob], list[NewEvent]]:
    return [job for entry in batch for job in entry.jobs], [event for entry in batch for event in entry.events]


def _shared_out(entries: list[_Entry], put: Put) -> list[_End]:
    if len(entries) == 1:
        return [(entries[0], put)]
    shares: list[_End] = []
    job = event = 0
    for entry in entries:
        jobs, events = job + len(entry.jobs), event + len(entry.events)
        shares.append((entry, Put(put.jobs[job:jobs], put.events[event:events])))
        job, event = jobs, events
    return shares


def _for_each(error: StoreUnavailable | SchemaMismatch) -> Exception:
    """An error of its own for each waiter: raising one object in many tasks mixes up their tracebacks."""
    own = type(error)(*error.args)
    own.__cause__ = error
    return own
