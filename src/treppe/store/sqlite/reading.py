"""Reading jobs and figures as people see them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from treppe.job import Attempt, Event, Job, Kind, NewEvent, State
from treppe.store.protocol import Backlog, Filter, Page, QueueBacklog
from treppe.store.sqlite.database import SQL, Connection
from treppe.store.sqlite.putting import REPEATS
from treppe.store.sqlite.settling import HANDED_OVER, RUNNING, STATE_OF, UNCLEAR
from treppe.store.text import can_be

MAX_PAGE = 500
_ASIDE = {State.UNCLEAR, State.HANDED_OVER}
_PARKED = {State.WAITING: (0, 1), State.UNCLEAR: (2,), State.HANDED_OVER: (3,), State.RUNNING: (4,)}
_NEWEST = 2**62


def get(db: Connection, id: str) -> Job | None:
    """One job with payload and history."""
    if not can_be(id):
        return None
    row = db.execute(SQL["job_seq"], (id,)).fetchone()
    if row is None:
        return None
    (job,) = _seen(db, [row[0]])
    payload, content_type, result = db.execute(SQL["content_of"], (job.seq,)).fetchone()
    return msgspec.structs.replace(
        job, payload=payload, content_type=content_type, result=result, history=_history(db, job.seq)
    )


def find(db: Connection, wanted: Filter, after: int | None, n: int, now: float) -> Page:
    """Jobs newest first; the statement is chosen by what drives it best."""
    if not can_be(wanted.queue, wanted.task, wanted.key, wanted.text, *(wanted.event or ())):
        return Page(())
    n = max(1, min(n, MAX_PAGE))
    source, event_id = wanted.event or (None, None)
    ask = {
        "after": _NEWEST if after is None else after, "n": n, "now": now, "late": wanted.late,
        "ended_after": wanted.ended_after, "queue": wanted.queue, "task": wanted.task, "key": wanted.key,
        "text": wanted.text, "source": source, "event": event_id, "states": _json(wanted.states),
        "parked": _parked(wanted),
    }  # fmt: skip
    seqs = [seq for (seq,) in db.execute(SQL[_statement(wanted)], ask)]
    return Page(_seen(db, seqs), seqs[-1] if len(seqs) == n else None)


def event(db: Connection, source: str, id: str) -> NewEvent | None:
    """An accepted event, byte for byte."""
    if not can_be(source, id):
        return None
    row = db.execute(SQL["event_get"], (source, id)).fetchone()
    if row is None:
        return None
    headers = tuple((name, value) for name, value in msgspec.json.decode(row[3]))
    return NewEvent(row[0], row[1], row[2], headers, row[4], row[5])


def backlog(db: Connection, now: float) -> Backlog:
    """Exact counts and ages, from one snapshot."""
    figures: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(int))
    tasks: dict[str, int] = defaultdict(int)
    for queue, parked, task, scheduled, retrying, due, oldest in db.execute(SQL["backlog_live"], (now,)):
        figure = figures[queue]
        if parked in (UNCLEAR, HANDED_OVER, RUNNING):
            figure[STATE_OF[parked].value] += scheduled + retrying + due
            continue
        tasks[task] += due
        figure["behind" if parked else "waiting"] += due + (retrying if parked else 0)
        figure["scheduled"] += scheduled
        figure["retrying"] += 0 if parked else retrying
        if oldest is not None:
            figure["oldest_age"] = max(figure["oldest_age"], now - oldest)
    for queue, dead in db.execute(SQL["backlog_dead"]):
        figures[queue]["dead"] = dead
    counts = dict(db.execute(SQL["count_all"]))
    queues = tuple(QueueBacklog(queue, **figures[queue]) for queue in sorted(figures))
    return Backlog(now, queues, counts.get("accepted", 0), counts.get("done", 0), dict(tasks))


def _statement(wanted: Filter) -> str:
    states = set(wanted.states)
    if wanted.late is not None:
        return "find_late"
    if wanted.event is not None:
        return "find_event"
    if states == {State.DEAD}:
        return "find_dead"
    if len(states) == 1 and states <= _ASIDE:
        return "find_parked"
    return "find_live" if states and states <= set(_PARKED) else "find_job"


def _parked(wanted: Filter) -> object:
    codes = [code for state in wanted.states for code in _PARKED.get(state, ())]
    return codes[0] if _statement(wanted) == "find_parked" else _json(codes)


def _json(values: Any) -> str | None:
    return msgspec.json.encode(values).decode() if values else None


def _seen(db: Connection, seqs: list[int]) -> tuple[Job, ...]:
    return tuple(_job(row) for row in db.execute(SQL["seen_of"], (_json(seqs) or "[]",)))


def _job(row: tuple[Any, ...]) -> Job:
    (seq, id, task, queue, okey, priority, repeat, attempts, first_due, deadline, created_at, state, token, claims,
     charged, crashes, due_at, run_at, expires_at, suspect, cancel, ended_at, error, source, event_id,
     behind) = row  # fmt: skip
    return Job(
        seq, id, task, queue, State(state), okey, priority, REPEATS[repeat], token, claims, charged, attempts, crashes,
        created_at, due_at, run_at, None if deadline is None else first_due + deadline, expires_at, ended_at, error,
        event=None if source is None else (source, event_id), behind=behind, suspect=bool(suspect),
        cancelling=bool(cancel),
    )  # fmt: skip


def _history(db: Connection, seq: int) -> tuple[Attempt, ...]:
    rows = db.execute(SQL["history"], (seq,))
    return tuple(Attempt(row[0], Event(row[1]), Kind(row[2]), bool(row[3]), *row[4:]) for row in rows)
