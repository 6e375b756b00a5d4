"""Human acts: on the job as it was seen, or not at all; audited in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from treppe.job import START_MARK, Event, Kind, State
from treppe.store.alike import may_act
from treppe.store.protocol import Seen
from treppe.store.sqlite.database import SQL, Connection
from treppe.store.sqlite.journal import append
from treppe.store.sqlite.settling import STATE_OF, Live, bury, end, release_key, remember
from treppe.store.text import can_be, clean


def change(db: Connection, seen: Sequence[Seen], event: Event, by: str, note: str, now: float) -> list[Seen]:
    """Carry the act out on each job that is still as it was seen; return the others."""
    by, note = clean(by), clean(note)
    changed = [_change_one(db, one, event, by, note, now) for one in seen]
    refused = [one for one, done in zip(seen, changed, strict=True) if not done]
    done = [one.id for one, done in zip(seen, changed, strict=True) if done]
    if done:
        record = {"by": by, "act": event.value, "ids": done, "note": note, "at": now}
        append(db, "audit", [msgspec.json.encode(record)], now)
    return refused


def _change_one(db: Connection, one: Seen, event: Event, by: str, note: str, now: float) -> bool:
    job = db.execute(SQL["job_seq"], (one.id,)).fetchone() if can_be(one.id) else None
    if job is None:
        return False
    seq, queue, okey, due = job
    row = db.execute(SQL["live_state"], (seq,)).fetchone()
    if row is not None:
        return _change_live(db, seq, Live(*row), one, event, by, note, now)
    dead = db.execute(SQL["dead_get"], (seq,)).fetchone()
    if dead is None or dead[0] != one.token:
        return False
    live = Live(0, one.token, None, 0, 0, 0, 0, 0, 0, okey, 0, 0, queue, due, None)
    return _change_dead(db, seq, live, event, by, note, now)


def _change_live(db: Connection, seq: int, live: Live, one: Seen, event: Event, by: str, note: str, now: float) -> bool:
    state = STATE_OF[live.parked]
    if live.token != one.token or not may_act(state, event):
        return False
    if event is Event.ASK_CANCEL:
        db.execute(SQL["cancel_flag"], (seq,))
    elif event is Event.REVIVE:
        db.execute(SQL["revive_update"], (seq, now))
        db.execute(SQL["notes_restart"], (seq, START_MARK))  # the human has answered that doubt
    elif event is Event.BURY:
        bury(db, seq, live, now, note or "given up by hand", live.charged, live.crashes)
    else:
        end(db, seq, live, now)
    _remember(db, seq, live, event, by, note, now, final=event in (Event.CANCEL, Event.CONFIRM))
    return True


def _change_dead(db: Connection, seq: int, live: Live, event: Event, by: str, note: str, now: float) -> bool:
    if not may_act(State.DEAD, event):
        return False
    db.execute(SQL["dead_delete"], (seq,))
    if event is Event.REVIVE:
        db.execute(SQL["revive_insert"], (seq, now, live.token))
    else:
        release_key(db, seq, live.queue, live.okey, now)
    _remember(db, seq, live, event, by, note, now, final=event is not Event.REVIVE)
    return True


def _remember(db: Connection, seq: int, live: Live, event: Event, by: str, note: str, now: float, final: bool) -> None:
    text = f"{by}: {note}" if note else by
    row = (seq, live.token, event.value, Kind.ACT.value, 0, live.due_at, None, now, None, text, None, None)
    remember(db, row, final)
    if event is Event.CONFIRM:
        db.execute(SQL["count_add"], ("done", 1))
