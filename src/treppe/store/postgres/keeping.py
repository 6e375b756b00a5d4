"""Upkeep: lapses, expiry, keys left behind, retention. Bounded rounds that any worker may run, several at a time.

One statement looks what there is to do; most often that is nothing. What it finds is locked and looked at again in the
transaction that writes; a round never touches more than ``MAX_BATCH`` rows of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from treppe.job import Event, Kind, State
from treppe.store.postgres.database import SQL, Database, Tx
from treppe.store.postgres.putting import REPEATS
from treppe.store.postgres.writing import (
    CRASHED,
    LAPSED,
    UNCLEAR,
    WAITING,
    Line,
    Live,
    Writes,
    lock,
    promote,
)
from treppe.store.protocol import MAX_BATCH, AfterLapse, Lapsed, Upkept

EXPIRE_SLICE = 20_000
LAPSE_SLICE = 100_000
FOLD_AFTER = 100
BUSY, IDLE = 1.0, 10.0  # seconds between two rounds

_Work = Callable[[Tx, Sequence[int]], int]


class _ToDo(NamedTuple):
    """What ``keep_look.sql`` found."""

    gone: bool
    expired: list[int]
    slice_size: int
    slice_end: int | None
    unconfirmed: list[int]
    queues: list[str]
    keys: list[str]
    behind_size: int
    behind_end: int | None
    ended: bool
    events: list[int]
    old_size: int
    old_end: int | None
    counts: int
    healths: int
    next_in: float | None

    @property
    def look_in(self) -> float:
        """Where there was nothing to do: until the next lease, expiry or confirmation is over, but not for long."""
        some = self.expired or self.unconfirmed or self.events or self.behind_size
        many = self.slice_size == EXPIRE_SLICE or max(self.counts, self.healths) >= FOLD_AFTER
        rest = BUSY if self.gone or self.ended or some or many else IDLE
        return rest if self.next_in is None else min(rest, self.next_in)


class Keeper:
    """Remembers where the last round stopped."""

    def __init__(self, database: Database, keep_events: float) -> None:
        self._database = database
        self._keep_events = keep_events
        self._expire_after = 0
        self._behind_after = 0
        self._event_after = 0
        self._lapse_after = 0
        self._gone: list[int] = []  # whose jobs the walk is about

    def round(self, after_lapse: AfterLapse | None) -> Upkept:
        """One bounded round; see :meth:`treppe.store.protocol.Store.upkeep`."""
        todo = self._look()
        lapsed, more = self._lapse(after_lapse) if after_lapse and todo.gone else (0, False)
        expired = self._write(_expire, todo.expired)
        unconfirmed = self._write(_doubt_unconfirmed, todo.unconfirmed)
        keys = list(zip(todo.queues, todo.keys, strict=True))
        promoted = self._database.write(lambda tx: promote(tx, keys)) if keys else 0
        forgotten, more_old = self._forget(todo)
        self._fold(todo)
        full = max(len(todo.expired), unconfirmed) >= MAX_BATCH or (promoted and self._behind_after > 0)
        return Upkept(lapsed, expired, promoted, forgotten, bool(more or more_old or full), todo.look_in)

    def _look(self) -> _ToDo:
        ask = (
            self._expire_after,
            EXPIRE_SLICE,
            self._behind_after,
            self._event_after,
            float(self._keep_events),
            MAX_BATCH,
        )
        todo = _ToDo(*self._database.once(SQL["keep_look"], ask)[0])
        if len(todo.expired) == MAX_BATCH:
            self._expire_after = todo.expired[-1]
        else:
            self._expire_after = todo.slice_end or 0 if todo.slice_size == EXPIRE_SLICE else 0
        self._behind_after = todo.behind_end or 0 if todo.behind_size == MAX_BATCH else 0
        self._event_after = todo.old_end or 0 if todo.old_size == MAX_BATCH else 0
        return todo

    def _write(self, work: _Work, seqs: Sequence[int]) -> int:
        return self._database.write(lambda tx: work(tx, seqs)) if seqs else 0

    def _lapse(self, after_lapse: AfterLapse) -> tuple[int, bool]:
        """A step of a walk over all live jobs. Who is given up claims no more: at its end nothing is left of them."""
        gone = [row[0] for row in self._database.once(SQL["workers_give_up"])]
        if gone != self._gone:
            self._gone, self._lapse_after = gone, 0
        if not gone:
            return 0, False
        ask = (self._lapse_after, LAPSE_SLICE, MAX_BATCH)
        seqs, size, end = self._database.once(SQL["lapsed_look"], ask)[0]
        done = self._database.write(lambda tx: _lapse(tx, seqs, after_lapse)) if seqs else 0
        full = len(seqs) == MAX_BATCH
        if full or size == LAPSE_SLICE:
            self._lapse_after = seqs[-1] if full else end
            return done, True
        self._database.once(SQL["workers_forget"], (gone,))
        self._gone = []
        return done, False

    def _forget(self, todo: _ToDo) -> tuple[int, bool]:
        forgotten = len(self._database.once(SQL["forget_jobs"], (MAX_BATCH,))) if todo.ended else 0
        if todo.events:
            self._database.once(SQL["forget_events"], (todo.events,))
        return forgotten, forgotten >= MAX_BATCH or bool(todo.events and self._event_after)

    def _fold(self, todo: _ToDo) -> None:
        if todo.counts >= FOLD_AFTER:
            self._database.once(SQL["fold_counts"], (MAX_BATCH,))
        if todo.healths >= FOLD_AFTER:
            self._database.once(SQL["fold_healths"], (MAX_BATCH,))


def _lapse(tx: Tx, seqs: Sequence[int], after_lapse: AfterLapse) -> int:
    rows = [live for live in lock(tx, seqs).values() if live.running]
    workers = sorted({live.worker for live in rows if live.worker is not None})
    alive = {worker for (worker,) in tx.rows(SQL["workers_alive"], (workers,))}
    writes, lost = Writes(tx), [live for live in rows if live.worker not in alive]
    for live in lost:
        _lapse_one(writes, live, after_lapse)
    writes.flush()
    return len(lost)


def _lapse_one(writes: Writes, live: Live, after_lapse: AfterLapse) -> None:
    lapse = after_lapse(Lapsed(REPEATS[live.repeat], live.suspect, live.cancel, live.crashes, live.max_crashes))
    live = live._replace(crashes=live.crashes + lapse.crashed)
    line = _line(live, lapse.event, Kind.LAPSED, lapse.error)
    if lapse.event is Event.BURY:
        writes.bury(live, line, lapse.error)
    elif lapse.event is Event.CANCEL:
        writes.end(live, line)
    else:
        parked = UNCLEAR if lapse.event is Event.DOUBT else WAITING
        mark = CRASHED if lapse.crashed else LAPSED
        writes.take_back(live, line, parked, mark, lapse.event is Event.LAPSE)


def _expire(tx: Tx, seqs: Sequence[int]) -> int:
    writes, rows = Writes(tx), lock(tx, seqs).values()
    expired = [live for live in rows if live.state is State.WAITING and live.expires_at <= tx.now()]
    for live in expired:
        reason = "not done before it expired"
        writes.bury(live, _line(live, Event.EXPIRE, Kind.EXPIRED, reason, began=False), reason)
    writes.flush()
    return len(expired)


def _doubt_unconfirmed(tx: Tx, seqs: Sequence[int]) -> int:
    writes, rows = Writes(tx), lock(tx, seqs).values()
    unconfirmed = [live for live in rows if live.state is State.HANDED_OVER and live.run_at <= tx.now()]
    for live in unconfirmed:
        line = _line(live, Event.DOUBT, Kind.UNCLEAR, "handed over, and not confirmed in time")
        writes.put_aside(live, line, UNCLEAR)
    writes.flush()
    return len(unconfirmed)


def _line(live: Live, event: Event, kind: Kind, error: str, began: bool = True) -> Line:
    started_at, worker = (live.started_at, live.worker) if began else (None, None)
    return Line(live.seq, live.token, event, kind, False, live.due_at, started_at, worker, error)
