"""The one way in: validate, check what the store can keep, put.

The door, Python tasks and schedules all come through here. :class:`Intake` is for threads; :class:`Batcher` is for
event loops and lets concurrent callers share one commit.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from treppe.config import Destination
from treppe.errors import Conflict, InvalidJob, SchemaMismatch, StoreUnavailable, Unsupported
from treppe.job import NewEvent, NewJob, Repeat
from treppe.store.protocol import Plan, Put, Store

MAX_PUT: Final = 10_000
"""No put holds more jobs and events than this. A put is all or nothing, so it is never cut into pieces."""

MAX_PAYLOAD: Final = 256 * 1024
"""A job's own payload has at most so many bytes, if nothing else is said. Large things belong in a file or a bucket."""


class Intake:
    """Puts jobs and events into a store, after a look at each of them."""

    def __init__(self, store: Store, max_payload: int = MAX_PAYLOAD) -> None:
        self.store = store
        self.max_payload = max_payload

    def put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put:
        """Store all of it or nothing; return once it is on disk.

        Raises InvalidJob before anything is stored. A taken id raises nothing: see :func:`raise_conflicts`.
        """
        self.check(jobs, events)
        return self.store.put(jobs, events)

    def plan(self, jobs: Sequence[NewJob]) -> Plan:
        """The same as statements for the caller's own transaction; Unsupported where the store has none."""
        if not self.store.can.within:
            raise Unsupported("this store cannot enqueue inside your transaction. Leave out within=")
        self.check(jobs)
        return self.store.plan(jobs)

    def check(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> None:
        """InvalidJob for the first thing that cannot be stored: it names the job, the field and the cure."""
        entries = len(jobs) + len(events)
        if entries > MAX_PUT:
            raise InvalidJob(f"{entries} entries are too many for one put. Put at most {MAX_PUT} at once")
        for event in events:
            _obey(_EVENT_RULES, event, "event")
        for job in jobs:
            _obey(_JOB_RULES, job, "job")
            if len(job.payload) > self.max_payload:
                raise InvalidJob(
                    f"job {_shown(job.id)}: its payload has {len(job.payload)} bytes, {self.max_payload} are allowed. "
                    "Put the data where the handler can fetch it, and enqueue its address"
                )


def raise_conflicts(put: Put) -> Put:
    """Raise Conflict for the first job whose id is taken by another one; else hand the answer on.

    >>> from treppe.job import Placed
    >>> raise_conflicts(Put((Placed("invoice:42", 7, duplicate=True, conflict="queue"),)))
    Traceback (most recent call last):
    treppe.errors.Conflict: the id "invoice:42" is taken by a job with another queue. ...
    """
    for placed in put.jobs:
        if placed.conflict:
            raise Conflict(placed.id, placed.conflict)
    return put


def delivery_settings(destination: Destination) -> dict[str, Any]:
    """What all jobs of a destination have in common, as fields of a NewJob. Without an idempotency header: ask.

    >>> delivery_settings(Destination("crm", "https://crm.example/in"))["repeat"]
    <Repeat.ASK: 'ask'>
    """
    repeat = destination.repeat or ("safe" if destination.idempotency else "ask")
    same = ("attempts", "crashes", "expires", "deadline", "skip_dead")
    own = {"task": destination.task, "queue": destination.pace_queue, "repeat": Repeat(repeat)}
    return own | {name: getattr(destination, name) for name in same}


def new_id() -> str:
    """A UUIDv7 (RFC 9562) as text: ids made later in this process sort behind earlier ones.

    >>> first, second = new_id(), new_id()
    >>> first < second, len(first), first[14]
    (True, 36, '7')
    """
    global _last_id  # noqa: PLW0603 - the order holds within the process
    with _id_lock:
        fresh = (time.time_ns() // 1_000_000 << 74) | secrets.randbits(74)
        # Within a millisecond, or after the clock went back: a random step beyond the last one.
        _last_id = fresh if fresh >> 74 > _last_id >> 74 else _last_id + 1 + secrets.randbits(32)
        moment, middle, tail = _last_id >> 74, _last_id >> 62 & 0xFFF, _last_id & (1 << 62) - 1
    text = f"{moment << 80 | 0x7 << 76 | middle << 64 | 0b10 << 62 | tail:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Batcher:
    """Group commit for event loops: concurrent callers share one commit, a lone one does not wait for others.

    ``await put(...)`` returns only after the commit. Works in any number of loops. The store is called in one
    thread of its own, with at most ``most`` entries at once; when more than ``room`` entries or ``room_bytes`` bytes
    wait, or an entry waited longer than ``patience`` seconds, its caller gets StoreUnavailable instead of waiting on.

    After a commit the thread waits for as many entries as were under way just then, but never longer than ``linger``
    seconds: whoever was just answered often has the next one ready, and one large commit costs less than two.
    """

    def __init__(
        self,
        intake: Intake,
        most: int = 100,
        room: int = 2000,
        room_bytes: int = 64 << 20,
        patience: float = 4.0,
        linger: float = 0.002,
    ) -> None:
        self._intake = intake
        self._most, self._room, self._room_bytes = most, room, room_bytes
        self._patience, self._linger = patience, linger
        self._enough = threading.Condition(threading.Lock())
        self._wanted = 1  # so many entries make a batch
        self._waiting: deque[_Entry] = deque()
        self._waiting_bytes = 0
        self._working = self._closed = False
        self._thread = ThreadPoolExecutor(1, "treppe-intake")

    async def put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = (), checked: bool = False) -> Put:
        """Store all of this entry or nothing of it. Raises as :meth:`Intake.put` does, or StoreUnavailable.

        After StoreUnavailable it may still get stored; putting the same ids again adds nothing. ``checked`` is for
        callers that make jobs which keep every rule by the way they are made.
        """
        if not checked:
            self._intake.check(jobs, events)
        loop = asyncio.get_running_loop()
        entry = _Entry(jobs, events, loop)
        with self._enough:
            self._admit(entry)
        late = loop.call_later(self._patience, self._give_up, entry.future)
        try:
            return await entry.future
        finally:
            late.cancel()

    def close(self) -> None:
        """Commit what waits, then end the thread. Later puts raise StoreUnavailable."""
        with self._enough:
            self._closed = True
            self._enough.notify()
        self._thread.shutdown()

    def _admit(self, entry: _Entry) -> None:
        if self._closed:
            raise StoreUnavailable("the intake is closed: this process is shutting down")
        full = len(self._waiting) >= self._room or self._waiting_bytes + entry.size > self._room_bytes
        if full and self._waiting:
            raise StoreUnavailable(f"too much waits to be stored ({len(self._waiting)} entries). Try again in a moment")
        self._waiting.append(entry)
        self._waiting_bytes += entry.size
        if not self._working:
            self._working = True
            self._thread.submit(self._work)
        elif len(self._waiting) >= self._wanted:
            self._enough.notify()

    def _work(self) -> None:
        entries: list[_Entry] = []
        while entries := self._next_batch(len(entries)):
            ends: dict[asyncio.AbstractEventLoop, list[_End]] = defaultdict(list)
            for entry, end in self._put(entries):
                ends[entry.loop].append((entry, end))
            for loop, settled in ends.items():
                with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                    loop.call_soon_threadsafe(_answer, settled)

    def _next_batch(self, just_answered: int) -> list[_Entry]:
        batch: list[_Entry] = []
        size = 0
        with self._enough:
            self._wanted = min(self._most, just_answered + len(self._waiting))
            self._enough.wait_for(lambda: len(self._waiting) >= self._wanted or self._closed, self._linger)
            while self._waiting and len(batch) < self._most and size < _BATCH_BYTES:
                batch.append(self._waiting.popleft())
                size += batch[-1].size
            self._waiting_bytes -= size
            self._working = bool(batch)
        return batch

    def _put(self, entries: list[_Entry]) -> list[_End]:
        """One call for all; where it fails, halves of them, until the one at fault stands alone."""
        try:
            put = self._intake.store.put([j for e in entries for j in e.jobs], [v for e in entries for v in e.events])
            return _shared_out(entries, put)
        except (StoreUnavailable, SchemaMismatch) as error:
            return [(entry, _for_each(error)) for entry in entries]
        except Exception as error:
            if len(entries) == 1:
                return [(entries[0], error)]
            half = len(entries) // 2
            return self._put(entries[:half]) + self._put(entries[half:])

    def _give_up(self, future: asyncio.Future[Put]) -> None:
        if not future.done():
            future.set_exception(StoreUnavailable(f"not on disk after {self._patience:g} s"))


class _Entry:
    """What one caller wants stored, and where it waits for the answer."""

    __slots__ = ("events", "future", "jobs", "loop", "size")

    def __init__(self, jobs: Sequence[NewJob], events: Sequence[NewEvent], loop: asyncio.AbstractEventLoop) -> None:
        self.jobs, self.events, self.loop = jobs, events, loop
        self.future: asyncio.Future[Put] = loop.create_future()
        self.size = sum([len(job.payload) for job in jobs]) + sum([len(event.body) for event in events])


_End = tuple[_Entry, Put | Exception]
_BATCH_BYTES: Final = 16 << 20


def _answer(ends: list[_End]) -> None:
    for entry, end in ends:
        if entry.future.done():
            continue
        if isinstance(end, Put):
            entry.future.set_result(end)
        else:
            entry.future.set_exception(end)


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


_T = TypeVar("_T", NewJob, NewEvent)
_Rules = Sequence[tuple[str, Callable[[_T], bool], str]]


def _obey(rules: _Rules[_T], thing: _T, kind: str) -> None:
    for field, holds, cure in rules:
        if not holds(thing):
            raise InvalidJob(f"{kind} {_shown(thing.id)}: {field} is {_shown(getattr(thing, field), field)}. {cure}")


def _shown(value: object, field: str = "") -> str:
    if field in ("payload", "body"):  # never quoted: it may hold what must not get into a log
        return f"of type {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


_id_lock = threading.Lock()
_last_id = 0


def _begin_anew() -> None:
    """A forked child must not wait for its parent's lock, nor count on from its parent's last id."""
    global _id_lock, _last_id
    _id_lock, _last_id = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)

_CENTURY: Final = 100 * 366 * 86400.0
_YEAR_9999: Final = 253_402_300_799.0
_PLAIN_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}")
_TASK: Final = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}")
_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9_.:/-]{0,127}")


def _is_text(value: object, pattern: re.Pattern[str] = _PLAIN_TEXT) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _is_count(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and _is_number(value, least, most)


_TEXT_CURE: Final = "Use text of 1 to 255 characters without control characters"
_QUEUE_CURE: Final = "Use up to 128 of a-z 0-9 _ . : / -, beginning with a letter or digit"
_SECONDS_CURE: Final = "Use seconds, from 0 to 100 years"
_SECONDS_OR_NONE: Final = _SECONDS_CURE + ", or None"

_JOB_RULES: Final[_Rules[NewJob]] = (
    ("id", lambda job: _is_text(job.id), _TEXT_CURE),
    ("task", lambda job: _is_text(job.task, _TASK), "Use text of 1 to 255 characters without spaces"),
    ("queue", lambda job: _is_text(job.queue, _QUEUE), _QUEUE_CURE),
    ("key", lambda job: job.key is None or _is_text(job.key), _TEXT_CURE + ", or None"),
    ("payload", lambda job: isinstance(job.payload, bytes), "Use bytes"),
    ("event", lambda job: job.event is None or not job.payload, "A job of an event has no payload of its own"),
    ("content_type", lambda job: _is_text(job.content_type), _TEXT_CURE),
    ("priority", lambda job: _is_count(job.priority, -100, 100), "Use a whole number from -100 to 100"),
    ("repeat", lambda job: isinstance(job.repeat, Repeat), 'Use Repeat("safe"), Repeat("look") or Repeat("ask")'),
    ("attempts", lambda job: _is_count(job.attempts, 1, 100_000), "Use a whole number from 1 to 100000"),
    ("crashes", lambda job: _is_count(job.crashes, 1, 100_000), "Use a whole number from 1 to 100000"),
    ("delay", lambda job: _is_number(job.delay, 0, _CENTURY), _SECONDS_CURE),
    ("at", lambda job: job.at is None or _is_number(job.at, 0, _YEAR_9999), "Use Unix seconds before the year 10000"),
    ("at", lambda job: job.at is None or job.delay == 0, "Give at or delay, not both"),
    ("expires", lambda job: _is_number(job.expires, 0.001, _CENTURY), _SECONDS_CURE + ", more than 0"),
    ("deadline", lambda job: job.deadline is None or _is_number(job.deadline, 0, _CENTURY), _SECONDS_OR_NONE),
    ("keep", lambda job: _is_number(job.keep, 0, _CENTURY), _SECONDS_CURE),
)

_EVENT_RULES: Final[_Rules[NewEvent]] = (
    ("id", lambda event: _is_text(event.id), _TEXT_CURE),
    ("source", lambda event: _is_text(event.source), _TEXT_CURE),
    ("body", lambda event: isinstance(event.body, bytes), "Use bytes"),
    ("topic", lambda event: event.topic == "" or _is_text(event.topic), _TEXT_CURE),
    ("content_type", lambda event: event.content_type == "" or _is_text(event.content_type), _TEXT_CURE),
)
