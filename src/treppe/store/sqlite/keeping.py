"""Upkeep: lapses, expiry, keys left behind, retention. Bounded rounds that any worker may run.

What is found by reading is looked at again in the statement that writes; a round never touches more than
``MAX_BATCH`` rows of a kind.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from treppe.job import Event, Kind
from treppe.store.protocol import MAX_BATCH, AfterLapse, Lapsed, Upkept
from treppe.store.sqlite.database import SQL, Connection, Database
from treppe.store.sqlite.putting import REPEATS
from treppe.store.sqlite.settling import CRASHED, LAPSED, RUNNING, UNCLEAR, WAITING, Live, bury, end, promote, remember

EXPIRE_SLICE = 20_000


class Keeper:
    """Remembers where the last round stopped."""

    def __init__(self, database: Database, now: Callable[[], float], keep_events: float) -> None:
        self._database = database
        self._now = now
        self._keep_events = keep_events
        self._behind_after = 0
        self._expire_after = 0
        self._event_after = 0

    def round(self, after_lapse: AfterLapse | None) -> Upkept:
        """One bounded round; see :meth:`treppe.store.protocol.Store.upkeep`."""
        lapsed, more = self._lapse(after_lapse) if after_lapse else (0, False)
        expired = self._expire()
        unconfirmed = self._doubt_unconfirmed()
        promoted, more_behind = self._promote()
        forgotten, more_old = self._forget()
        full = max(expired, unconfirmed) >= MAX_BATCH
        return Upkept(lapsed, expired, promoted, forgotten, more or more_behind or more_old or full)

    def _lapse(self, after_lapse: AfterLapse) -> tuple[int, bool]:
        gone = self._database.read(lambda db: db.execute(SQL["workers_gone"]).fetchall())
        now = self._now()
        if not gone and not self._database.read(lambda db: _any_lapsed(db, now)):
            return 0, False
        self._database.write(lambda db: db.execute(SQL["worker_give_up"], (self._now(),)))
        workers = [row[0] for row in self._database.read(lambda db: db.execute(SQL["workers_gone"]).fetchall())]
        # From the beginning each time: a worker is forgotten only when a look at all rows has found none of its own.
        ask = (msgspec.json.encode(workers).decode(), MAX_BATCH)
        rows = self._database.read(lambda db: db.execute(SQL["lapsed_select"], ask).fetchall())
        done = self._database.write(lambda db: sum(_lapse_one(db, row, after_lapse, self._now()) for row in rows))
        if len(rows) < MAX_BATCH:
            self._database.write(lambda db: db.executemany(SQL["worker_forget"], [(w,) for w in workers]))
        return done, len(rows) >= MAX_BATCH

    def _expire(self) -> int:
        expired, self._expire_after = self._database.read(self._find_expired)
        return self._database.write(lambda db: _expire(db, expired, self._now())) if expired else 0

    def _find_expired(self, db: Connection) -> tuple[list[int], int]:
        """Who has expired in the next slice of live jobs, and where to go on."""
        end, size = db.execute(SQL["live_slice"], (self._expire_after, EXPIRE_SLICE)).fetchone()
        if not size:
            return [], 0
        ask = (self._now(), self._expire_after, end, MAX_BATCH)
        expired = [seq for (seq,) in db.execute(SQL["expired_select"], ask)]
        if len(expired) == MAX_BATCH:
            return expired, expired[-1]
        return expired, end if size == EXPIRE_SLICE else 0

    def _doubt_unconfirmed(self) -> int:
        ask = (self._now(), MAX_BATCH)
        if not self._database.read(lambda db: db.execute(SQL["unconfirmed_select"], ask).fetchone()):
            return 0
        return self._database.write(lambda db: _doubt_unconfirmed(db, self._now()))

    def _promote(self) -> tuple[int, bool]:
        ask = (self._behind_after, MAX_BATCH)
        rows = self._database.read(lambda db: db.execute(SQL["behind_select"], ask).fetchall())
        self._behind_after = rows[-1][0] if len(rows) == MAX_BATCH else 0
        keys = {(queue, okey) for _, queue, okey, free in rows if free}
        if not keys:
            return 0, False
        promoted = self._database.write(lambda db: sum(_promote_free(db, q, k, self._now()) for q, k in sorted(keys)))
        return promoted, promoted > 0 and self._behind_after > 0

    def _forget(self) -> tuple[int, bool]:
        ask = (self._now(), MAX_BATCH)
        forgotten = 0
        if self._database.read(lambda db: db.execute(SQL["forget_select"], ask).fetchone()):
            forgotten = self._database.write(lambda db: _forget_jobs(db, self._now()))
        events = (self._event_after, self._now() - self._keep_events, MAX_BATCH)
        rows = self._database.read(lambda db: db.execute(SQL["events_old"], events).fetchall())
        self._event_after = rows[-1][0] if len(rows) == MAX_BATCH else 0
        old = [seq for seq, used in rows if not used]
        if old:
            self._database.write(lambda db: _forget_events(db, old))
        return forgotten, forgotten >= MAX_BATCH or bool(old and self._event_after)


def _any_lapsed(db: Connection, now: float) -> bool:
    return bool(db.execute(SQL["worker_lapsed"], (now,)).fetchone())


def _lapse_one(db: Connection, fence: tuple[int, int, int], after_lapse: AfterLapse, now: float) -> int:
    facts = db.execute(SQL["lapse_facts"], fence).fetchone()
    if facts is None:
        return 0
    seq, token, worker = fence
    (repeat, suspect, cancel, crashes, max_crashes, queue, okey, due_at, started_at, skip_dead, claims, charged) = facts
    lapse = after_lapse(Lapsed(REPEATS[repeat], bool(suspect), bool(cancel), crashes, max_crashes))
    crashes += lapse.crashed
    live = Live(
        RUNNING, token, worker, 0, suspect, cancel, crashes, claims, charged, okey, 0, skip_dead, queue, due_at,
        started_at,
    )  # fmt: skip
    _remember(db, seq, live, lapse.event, Kind.LAPSED, lapse.error, now)
    if lapse.event is Event.BURY:
        bury(db, seq, live, now, lapse.error, charged, crashes)
    elif lapse.event is Event.CANCEL:
        end(db, seq, live, now)
    else:
        parked = UNCLEAR if lapse.event is Event.DOUBT else WAITING
        mark = CRASHED if lapse.crashed else LAPSED
        suspected = lapse.event is Event.LAPSE
        db.execute(SQL["lapse_update"], (seq, parked, now, crashes, mark, int(suspected)))
        db.execute(SQL["slot_free"], (seq,))
    return 1


def _expire(db: Connection, seqs: list[int], now: float) -> int:
    return sum(_expire_one(db, seq, now) for seq in seqs)


def _expire_one(db: Connection, seq: int, now: float) -> bool:
    facts = db.execute(SQL["expired_facts"], (seq, now)).fetchone()
    if facts is None:
        return False
    parked, token, queue, okey, due_at, skip_dead, claims, charged, crashes = facts
    live = Live(parked, token, None, 0, 0, 0, crashes, claims, charged, okey, 0, skip_dead, queue, due_at, None)
    reason = "not done before it expired"
    _remember(db, seq, live, Event.EXPIRE, Kind.EXPIRED, reason, now)
    bury(db, seq, live, now, reason, charged, crashes)
    return True


def _doubt_unconfirmed(db: Connection, now: float) -> int:
    rows = db.execute(SQL["unconfirmed_select"], (now, MAX_BATCH)).fetchall()
    for seq, *_ in rows:
        live = Live(*db.execute(SQL["live_state"], (seq,)).fetchone())
        _remember(db, seq, live, Event.DOUBT, Kind.UNCLEAR, "handed over, and not confirmed in time", now)
        db.execute(SQL["park_update"], (seq, UNCLEAR, now, live.crashes, 0, None, None, None))
        db.execute(SQL["slot_free"], (seq,))
    return len(rows)


def _promote_free(db: Connection, queue: str, okey: str, now: float) -> int:
    if db.execute(SQL["key_holder"], (queue, okey)).fetchone():
        return 0
    return promote(db, queue, okey, now)


def _forget_jobs(db: Connection, now: float) -> int:
    seqs = db.execute(SQL["forget_select"], (now, MAX_BATCH)).fetchall()
    for statement in ("forget_attempts", "forget_notes", "forget_job"):
        db.executemany(SQL[statement], seqs)
    return len(seqs)


def _forget_events(db: Connection, seqs: list[int]) -> int:
    still = [(seq,) for seq in seqs if not _used(db, seq)]
    return db.executemany(SQL["event_delete"], still).rowcount


def _used(db: Connection, event: int) -> bool:
    return bool(db.execute(SQL["event_used"], (event,)).fetchone())


def _remember(db: Connection, seq: int, live: Live, event: Event, kind: Kind, error: str, now: float) -> None:
    row = (
        seq,
        live.token,
        event.value,
        kind.value,
        0,
        live.due_at,
        live.started_at,
        now,
        live.worker,
        error,
        None,
        None,
    )
    remember(db, row, final=event is Event.CANCEL)
