"""Settling: writing how claims ended, fenced by token and worker.

The common end (done, no key, no slot, on time) is written for the whole batch at once; everything else goes
one by one through the state machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from treppe.errors import IllegalTransition
from treppe.job import Event, Kind, Settlement, State, When, advance
from treppe.store.alike import reports_by_queue
from treppe.store.sqlite.database import SQL, Connection
from treppe.store.text import clean

WAITING, BEHIND, UNCLEAR, HANDED_OVER, RUNNING = range(5)
STATE_OF = (State.WAITING, State.WAITING, State.UNCLEAR, State.HANDED_OVER, State.RUNNING)
LAPSED, CRASHED = 1, 2
LINES = 10_000  # more history lines than a token ever gets

PLAIN: dict[str, str] = {word: word.value for words in (Event, Kind) for word in words}

_ENDS = frozenset({Event.FINISH, Event.HAND_OVER, Event.CONFIRM, Event.DEFER, Event.DOUBT, Event.BURY})

Line = tuple[Any, ...]


class Live(NamedTuple):
    """The hot row of a job, as ``live_state.sql`` reads it."""

    parked: int
    token: int
    worker: int | None
    lapsed: int
    suspect: int
    cancel: int
    crashes: int
    claims: int
    charged: int
    okey: str | None
    slotted: int
    skip_dead: int
    queue: str
    due_at: float
    started_at: float | None


def settle(db: Connection, settlements: Sequence[Settlement], now: float) -> list[Settlement]:
    """Write all that still count; return those that were refused."""
    plain, rest = _sorted_out(db, settlements)
    _finish_all(db, plain, now)
    refused = [s for s in rest if not _settle_one(db, s, now)]
    _report(db, _without(settlements, refused) if refused else settlements, now)
    return refused


def release_key(db: Connection, seq: int, queue: str, okey: str | None, now: float) -> None:
    """The job lets go of its order key; the next in line may be claimed."""
    if okey is None:
        return
    held = db.execute(SQL["key_free"], (seq,)).rowcount
    if held or not db.execute(SQL["key_holder"], (queue, okey)).fetchone():
        promote(db, queue, okey, now)


def promote(db: Connection, queue: str, okey: str, now: float) -> int:
    """Unpark the first of a key's line."""
    head = db.execute(SQL["key_head"], (queue, okey, now)).fetchone()
    return db.execute(SQL["unpark"], (head[0],)).rowcount if head else 0


def bury(db: Connection, seq: int, live: Live, now: float, reason: str, charged: int, crashes: int) -> None:
    """Move a live job to the dead letters. Its key stays taken unless the job lets go of it."""
    if live.okey is not None and not live.skip_dead:
        _hold_key(db, seq, live.queue, live.okey, now)
    db.execute(SQL["live_delete"], (seq,))
    db.execute(SQL["slot_free"], (seq,))
    row = (seq, live.queue, now, reason, live.token, live.claims, charged, crashes)
    db.execute(SQL["dead_insert"], row)
    if live.skip_dead:
        release_key(db, seq, live.queue, live.okey, now)


def _hold_key(db: Connection, seq: int, queue: str, okey: str, now: float) -> None:
    """A head that dies before it ever ran blocks its key like one that ran."""
    head = db.execute(SQL["key_head"], (queue, okey, now)).fetchone()
    if head is None or head[0] == seq:
        db.execute(SQL["key_take"], (queue, okey, seq))


def end(db: Connection, seq: int, live: Live, now: float) -> None:
    """The job is over: its row, its slot and its key are free."""
    db.execute(SQL["live_delete"], (seq,))
    db.execute(SQL["slot_free"], (seq,))
    release_key(db, seq, live.queue, live.okey, now)


def remember(db: Connection, line: Line, final: bool = False) -> None:
    """Add a line to a job's history; the *final* one says how long the job's id stays taken."""
    seq, token = line[0], line[1]
    last = db.execute(SQL["attempt_last"], (seq,)).fetchone()[0]
    db.execute(SQL["attempt_final" if final else "attempt_insert"], (*line, max(last + 1, token * LINES)))


def _sorted_out(db: Connection, settlements: Sequence[Settlement]) -> tuple[list[Settlement], list[Settlement]]:
    """Those with the common end whose claims are all in order, and the rest."""
    usual = {s.claim.seq: s for s in settlements if _is_plain(s)}
    if not usual:
        return [], list(settlements)
    fences = [(s.claim.seq, s.claim.token, s.claim.worker) for s in usual.values()]
    in_order = msgspec.json.decode(db.execute(SQL["running_of"], (_json(fences),)).fetchone()[0])
    if len(in_order) == len(settlements):
        return list(settlements), []
    plain = [usual[seq] for seq in in_order]
    return plain, _without(settlements, plain)


def _without(settlements: Sequence[Settlement], some: Sequence[Settlement]) -> list[Settlement]:
    ids = {id(s) for s in some}
    return [s for s in settlements if id(s) not in ids]


def _is_plain(s: Settlement) -> bool:
    return s.event is Event.FINISH and s.claim.key is None and not s.claim.slotted and not s.claim.suspect


def _finish_all(db: Connection, settlements: Sequence[Settlement], now: float) -> None:
    if not settlements:
        return
    told = [s for s in settlements if _has_more_to_say(s)]
    rows = [(*_attempt(s, now), s.claim.token * LINES) for s in told]
    if rows:
        db.executemany(SQL["attempt_final"], rows)
    silent = settlements if not told else _without(settlements, told)
    db.execute(SQL["attempt_finish"], (_json([s.claim.seq for s in silent]), now, LINES))
    db.execute(SQL["live_delete_all"], (_json([s.claim.seq for s in settlements]),))
    _count_health(db, settlements)
    _add(db, "done", len(settlements))


def _has_more_to_say(s: Settlement) -> bool:
    """More than the live row knows."""
    return s.result is not None or s.detail is not None or bool(s.error) or s.claim.start_at > s.claim.claimed_at


def _json(values: object) -> str:
    return msgspec.json.encode(values).decode()


def _settle_one(db: Connection, s: Settlement, now: float) -> bool:
    row = db.execute(SQL["live_state"], (s.claim.seq,)).fetchone()
    live = Live(*row) if row else None
    if live is None or (live.token, live.worker) != (s.claim.token, s.claim.worker):
        return False
    state = STATE_OF[live.parked]
    open_to_all = state in (State.RUNNING, State.HANDED_OVER) or s.event is Event.CONFIRM
    if s.event not in _ENDS or not (open_to_all or live.lapsed):
        return False
    try:
        target = advance(state, s.event, When.LATE if live.lapsed else When.ALWAYS)
    except IllegalTransition:
        return False
    _count_health(db, [s])
    _write(db, s, live, target, now)
    return True


def _write(db: Connection, s: Settlement, live: Live, target: State, now: float) -> None:
    crashes = live.crashes - (1 if live.lapsed == CRASHED else 0)
    seq = s.claim.seq
    if target is State.WAITING and live.cancel:
        end(db, seq, live, now)
        remember(db, _attempt(s, now, Event.CANCEL), final=True)
        return
    if target is State.DONE:
        end(db, seq, live, now)
        remember(db, _attempt(s, now), final=True)
        _add(db, "done", 1)
        return
    remember(db, _attempt(s, now))
    if target is State.DEAD:
        bury(db, seq, live, now, clean(s.error), live.charged + s.charged, crashes)
    elif target is State.WAITING:
        uncounted = int(not s.started and not s.claim.probe)
        db.execute(
            SQL["defer_update"],
            (seq, now + s.delay, int(s.charged), crashes, *_seen(db, s, now), uncounted),
        )
        db.execute(SQL["slot_free"], (seq,))
    elif target is State.HANDED_OVER:
        slotted = int(live.slotted or s.claim.slotted)
        if slotted and not live.slotted:
            db.execute(SQL["slot_retake"], (live.queue, seq))
        db.execute(SQL["park_update"], (seq, HANDED_OVER, now + s.confirm_within, crashes, slotted, None, None, None))
    else:
        db.execute(SQL["park_update"], (seq, UNCLEAR, now, crashes, 0, *_seen(db, s, now)))
        db.execute(SQL["slot_free"], (seq,))


def _attempt(s: Settlement, now: float, event: Event | None = None) -> Line:
    # Exact types only: for an enum or a bool the driver searches its adapters, ten times as slow.
    c = s.claim
    return (
        c.seq, c.token, PLAIN[event or s.event], PLAIN[s.kind], int(s.charged), c.due_at,
        max(c.start_at, c.claimed_at), now, c.worker, clean(s.error), s.result, s.detail,
    )  # fmt: skip


def _seen(db: Connection, s: Settlement, now: float) -> tuple[int | None, int | None, float | None]:
    """The evidence for the next charge, by the rule of ``policy.charge.next_seen``."""
    if not s.counts or s.kind is Kind.OK:
        return (None, None, None)
    ok, tried = db.execute(SQL["health_of"], (s.claim.task,)).fetchone() or (0, 0)
    before = s.claim.seen
    alone = before is not None and tried - before[1] <= 1
    return (ok, tried, before[2] if before is not None and alone and not s.charged else now)


def _report(db: Connection, settlements: Sequence[Settlement], now: float) -> None:
    for queue, reports in reports_by_queue(settlements, now).items():
        learned = [r for r in reports if r.kind is not Kind.OK] or _is_watched(db, queue)
        if learned:
            rows = [(f"report:{queue}", now, msgspec.msgpack.encode(report)) for report in reports]
            db.executemany(SQL["journal_append"], rows)


def _is_watched(db: Connection, queue: str) -> bool:
    """A success teaches nothing to a queue of which nothing is known."""
    flow = db.execute(SQL["value_get"], (f"flow:{queue}",)).fetchone()
    return bool(flow or db.execute(SQL["journal_any"], (f"report:{queue}",)).fetchone())


def _count_health(db: Connection, settlements: Iterable[Settlement]) -> None:
    counts: dict[str, list[int]] = {}
    for s in settlements:
        if s.counts:
            count = counts.setdefault(s.claim.task, [0, 0])
            count[0] += s.kind is Kind.OK
            count[1] += 1
    db.executemany(SQL["health_add"], [(task, ok, tried) for task, (ok, tried) in counts.items()])


def _add(db: Connection, name: str, n: int) -> None:
    db.execute(SQL["count_add"], (name, n))
