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

MAX_PAGE = 500
_ENDED = {Event.FINISH: State.DONE, Event.CONFIRM: State.DONE, Event.CANCEL: State.CANCELLED, Event.MOVE: State.MOVED}
_PARKED = {State.WAITING: (0, 1), State.UNCLEAR: (2,), State.HANDED_OVER: (3,), State.RUNNING: (4,)}
_NEWEST = 2**62


def get(db: Connection, id: str) -> Job | None:
    """One job with payload and history."""
    row = db.execute(SQL["job_get"], (id,)).fetchone()
    if row is None:
        return None
    job = _job(row)
    return msgspec.structs.replace(job, history=_history(db, job.seq))


def find(db: Connection, wanted: Filter, after: int | None, n: int, now: float) -> Page:
    """Jobs newest first; the statement is chosen by what drives it best."""
    n = max(1, min(n, MAX_PAGE))
    statement, states = _statement(wanted)
    source, event = wanted.event or (None, None)
    row: tuple[object, ...] = (
        _NEWEST if after is None else after,
        wanted.queue,
        wanted.task,
        wanted.key,
        source,
        event,
        wanted.text,
        states,
        n,
    )
    if wanted.late is not None:
        row += (now, wanted.late)
    jobs = tuple(_job(found) for found in db.execute(SQL[statement], row))
    return Page(jobs, jobs[-1].seq if len(jobs) == n else None)


def event(db: Connection, source: str, id: str) -> NewEvent | None:
    """An accepted event, byte for byte."""
    row = db.execute(SQL["event_get"], (source, id)).fetchone()
    if row is None:
        return None
    headers = tuple((name, value) for name, value in msgspec.json.decode(row[3]))
    return NewEvent(row[0], row[1], row[2], headers, row[4], row[5])


def backlog(db: Connection, now: float) -> Backlog:
    """Exact counts and ages, from one snapshot."""
    figures: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(int))
    for queue, parked, scheduled, retrying, due, oldest in db.execute(SQL["backlog_live"], (now,)):
        figure = figures[queue]
        if parked in (UNCLEAR, HANDED_OVER, RUNNING):
            figure[STATE_OF[parked].value] += scheduled + retrying + due
            continue
        figure["behind" if parked else "waiting"] += due + (retrying if parked else 0)
        figure["scheduled"] += scheduled
        figure["retrying"] += 0 if parked else retrying
        if oldest is not None:
            figure["oldest_age"] = max(figure["oldest_age"], now - oldest)
    for queue, dead in db.execute(SQL["backlog_dead"]):
        figures[queue]["dead"] = dead
    counts = dict(db.execute(SQL["count_all"]))
    queues = tuple(QueueBacklog(queue, **figures[queue]) for queue in sorted(figures))
    return Backlog(now, queues, counts.get("accepted", 0), counts.get("done", 0))


def _statement(wanted: Filter) -> tuple[str, object]:
    states = set(wanted.states)
    if wanted.late is not None:
        return "find_late", 1
    if wanted.event is not None:
        return "find_event", _json(wanted.states)
    if states == {State.DEAD}:
        return "find_dead", wanted.ended_after
    if len(states) == 1 and states <= {State.UNCLEAR, State.HANDED_OVER}:
        return "find_parked", _PARKED[states.pop()][0]
    if states and states <= set(_PARKED):
        return "find_live", _json([code for state in states for code in _PARKED[state]])
    return "find_job", _json(wanted.states)


def _json(values: Any) -> str | None:
    return msgspec.json.encode(values).decode() if values else None


def _job(row: tuple[Any, ...]) -> Job:
    (seq, id, task, queue, okey, priority, repeat, attempts, first_due, _, deadline, created_at,
     parked, token, claims, charged, crashes, due_at, run_at, deadline_at, expires_at, suspect, cancel,
     d_token, d_claims, d_charged, d_crashes, dead_at, reason, source, event_id, behind,
     a_event, a_token, finished_at, error, result, payload, content_type) = row  # fmt: skip
    state = STATE_OF[parked] if parked is not None else State.DEAD if d_token is not None else _ENDED[Event(a_event)]
    live = state in _PARKED
    ended = None if live else dead_at if state is State.DEAD else finished_at
    return Job(
        seq, id, task, queue, state, okey, priority, REPEATS[repeat],
        token=token if live else d_token if state is State.DEAD else a_token,
        claims=(claims if live else d_claims) or 0, charged=(charged if live else d_charged) or 0,
        attempts=attempts, crashes=(crashes if live else d_crashes) or 0, created_at=created_at,
        due_at=due_at if live else first_due, run_at=run_at,
        deadline_at=deadline_at if live else None if deadline is None else first_due + deadline,
        expires_at=expires_at if live else None, ended_at=ended,
        error=reason if state is State.DEAD else error or "", result=result,
        event=None if source is None else (source, event_id), behind=behind, suspect=bool(suspect),
        cancelling=bool(cancel), payload=payload, content_type=content_type,
    )  # fmt: skip


def _history(db: Connection, seq: int) -> tuple[Attempt, ...]:
    rows = db.execute(SQL["history"], (seq,))
    return tuple(Attempt(row[0], Event(row[1]), Kind(row[2]), bool(row[3]), *row[4:]) for row in rows)
