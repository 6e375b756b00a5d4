"""Reading jobs and figures as people see them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from treppe.job import Attempt, Event, Job, Kind, NewEvent, State
from treppe.store.postgres.connecting import PLAN_FREELY
from treppe.store.postgres.database import SQL, Row, Tx
from treppe.store.postgres.putting import REPEATS
from treppe.store.protocol import Backlog, Filter, Page, QueueBacklog
from treppe.store.text import can_be

MAX_PAGE = 500
_ASIDE = {State.UNCLEAR: 2, State.HANDED_OVER: 3}
_LIVE = {State.WAITING, State.RUNNING, State.UNCLEAR, State.HANDED_OVER}
_NEWEST = 2**62


def get(tx: Tx, id: str) -> Job | None:
    """One job with payload and history."""
    if not can_be(id):
        return None
    found = tx.rows(SQL["job_seq"], (id,))
    if not found:
        return None
    (job,) = _seen(tx, [found[0][0]])
    ((payload, content_type, result),) = tx.rows(SQL["content_of"], (job.seq,))
    return msgspec.structs.replace(
        job, payload=payload, content_type=content_type, result=result, history=_history(tx, job.seq)
    )


def find(tx: Tx, wanted: Filter, after: int | None, n: int) -> Page:
    """Jobs newest first; the statement is chosen by what drives it best."""
    if not can_be(wanted.queue, wanted.task, wanted.key, wanted.text, *(wanted.event or ())):
        return Page(())
    n = max(1, min(n, MAX_PAGE))
    name = _statement(wanted)
    common = (_NEWEST if after is None else after, n, wanted.queue, wanted.task, wanted.key, wanted.text)
    seqs = [seq for (seq,) in tx.rows(SQL[name], (*common, *_special(tx, name, wanted)))]
    return Page(_seen(tx, seqs), seqs[-1] if len(seqs) == n else None)


def event(tx: Tx, source: str, id: str) -> NewEvent | None:
    """An accepted event, byte for byte."""
    if not can_be(source, id):
        return None
    rows = tx.rows(SQL["event_get"], (source, id))
    if not rows:
        return None
    source, id, body, headers, content_type, topic = rows[0]
    pairs = tuple((name, value) for name, value in msgspec.json.decode(headers))
    return NewEvent(source, id, body, pairs, content_type, topic)


def backlog(tx: Tx) -> Backlog:
    """Exact counts and ages, from one snapshot."""
    tx.script(PLAN_FREELY)
    now = tx.now()
    figures: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(int))
    tasks: dict[str, int] = defaultdict(int)
    for queue, state, task, scheduled, retrying, due, oldest in tx.rows(SQL["backlog_live"], (now,)):
        figure = figures[queue]
        if state not in ("waiting", "behind"):
            figure[state] += scheduled + retrying + due
            continue
        tasks[task] += due
        figure[state] += due + (retrying if state == "behind" else 0)
        figure["scheduled"] += scheduled
        figure["retrying"] += 0 if state == "behind" else retrying
        if oldest is not None:
            figure["oldest_age"] = max(figure["oldest_age"], now - oldest)
    for queue, dead in tx.rows(SQL["backlog_dead"]):
        figures[queue]["dead"] = dead
    counts: dict[str, int] = dict(tx.rows(SQL["count_all"]))
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
    if len(states) == 1 and states <= _ASIDE.keys():
        return "find_parked"
    return "find_live" if states and states <= _LIVE else "find_job"


def _special(tx: Tx, name: str, wanted: Filter) -> tuple[Any, ...]:
    """The parameters that only this statement has."""
    states = [state.value for state in wanted.states] or None
    match name:
        case "find_late":
            return tx.now(), float(wanted.late or 0)
        case "find_event":
            return *(wanted.event or ()), states
        case "find_dead":
            return (None if wanted.ended_after is None else float(wanted.ended_after),)
        case "find_parked":
            return (_ASIDE[wanted.states[0]],)
        case "find_live":
            asides = [code for state, code in _ASIDE.items() if state in wanted.states]
            waiting = [0, 1] if State.WAITING in wanted.states else []
            return waiting + asides, State.RUNNING in wanted.states
        case _:
            return (states,)


def _seen(tx: Tx, seqs: list[int]) -> tuple[Job, ...]:
    return tuple(_job(row) for row in tx.rows(SQL["seen_of"], (seqs,))) if seqs else ()


def _job(row: Row) -> Job:
    (seq, id, task, queue, okey, priority, repeat, attempts, first_due, deadline, created_at, state, token, claims,
     charged, crashes, due_at, run_at, expires_at, suspect, cancel, ended_at, error, source, event_id,
     behind) = row  # fmt: skip
    return Job(
        seq, id, task, queue, State(state), okey, priority, REPEATS[repeat], token, claims, charged, attempts, crashes,
        created_at, due_at, run_at, None if deadline is None else first_due + deadline, expires_at, ended_at, error,
        event=None if source is None else (source, event_id), behind=behind, suspect=suspect, cancelling=cancel,
    )  # fmt: skip


def _history(tx: Tx, seq: int) -> tuple[Attempt, ...]:
    rows = tx.rows(SQL["history"], (seq,))
    return tuple(Attempt(row[0], Event(row[1]), Kind(row[2]), *row[3:]) for row in rows)
