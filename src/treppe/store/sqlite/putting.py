"""Putting jobs and events: the unique id is the only judge of what is a duplicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from treppe.errors import InvalidJob
from treppe.job import NewEvent, NewJob, Placed, Repeat, band_of
from treppe.store.protocol import Plan, Put
from treppe.store.sqlite.database import SQL, Connection, insert_all

REPEATS = (Repeat.SAFE, Repeat.LOOK, Repeat.ASK)
REPEAT_CODE = {repeat: code for code, repeat in enumerate(REPEATS)}


def put(db: Connection, jobs: Sequence[NewJob], events: Sequence[NewEvent], now: float) -> Put:
    """Place events, then the jobs of those that are new, and the jobs without an event."""
    placed_events = _put_events(db, events, now)
    seqs = {(e.source, e.id): p.seq for e, p in zip(events, placed_events, strict=True)}
    repeated: set[tuple[str, str]] = set()
    if any(placed.duplicate for placed in placed_events):
        fresh_events = {(e.source, e.id) for e, p in zip(events, placed_events, strict=True) if not p.duplicate}
        repeated = seqs.keys() - fresh_events  # an event may come twice in one batch: its first arrival places the jobs
    if not repeated:
        return Put(tuple(_put_jobs(db, jobs, seqs, now)), tuple(placed_events))
    placed = _put_jobs(db, [job for job in jobs if job.event not in repeated], seqs, now)
    again = iter(_repeated(db, [job.id for job in jobs if job.event in repeated]))
    ahead = iter(placed)
    answers = [next(again) if job.event in repeated else next(ahead) for job in jobs]
    return Put(tuple(answers), tuple(placed_events))


def plan(jobs: Sequence[NewJob], now: float) -> Plan:
    """The same, job by job and in the order of ids, for somebody else's connection and transaction."""
    if of_event := next((job for job in jobs if job.event is not None), None):
        raise InvalidJob(f'job "{of_event.id}": a job of an event is put together with it, not within a transaction')
    answers: dict[int, Placed] = {}
    placed = 0
    for index in sorted(range(len(jobs)), key=lambda i: jobs[i].id):
        job = jobs[index]
        rows = yield SQL["job_insert_guest"], _job_row(None, job, None, now)
        if rows:
            yield SQL["live_insert"], _live_row(rows[0][0], job, now)
            answers[index] = Placed(job.id, rows[0][0])
            placed += 1
        else:
            first = yield SQL["job_same"], (_json([job.id]),)
            answers[index] = _judged(job, first[0])
    if placed:
        yield SQL["count_add"], ("accepted", placed)
    return Put(tuple(answers[i] for i in range(len(jobs))))


def _repeated(db: Connection, ids: Sequence[str]) -> list[Placed]:
    seqs = {row[0]: row[1] for row in db.execute(SQL["job_same"], (_json(ids),))}
    return [Placed(id, seqs.get(id, 0), duplicate=True) for id in ids]


def _put_events(db: Connection, events: Sequence[NewEvent], now: float) -> list[Placed]:
    first = _next_seq(db, "treppe_event") if events else 0
    rows = [
        (first + i, e.source, e.id, e.topic, e.body, e.content_type, msgspec.json.encode(e.headers), now)
        for i, e in enumerate(events)
    ]
    if insert_all(db, "event_insert", rows) == len(events):
        return [Placed(event.id, first + i) for i, event in enumerate(events)]
    return [_judged_event(db, event, first + i) for i, event in enumerate(events)]


def _judged_event(db: Connection, event: NewEvent, mine: int) -> Placed:
    seq, body = db.execute(SQL["event_same"], (event.source, event.id)).fetchone()
    if seq == mine:
        return Placed(event.id, seq)
    return Placed(event.id, seq, duplicate=True, conflict="" if body == event.body else "content")


def _next_seq(db: Connection, table: str) -> int:
    last = db.execute(SQL["last_seq"], (table,)).fetchone()
    return (last[0] if last else 0) + 1


def _put_jobs(db: Connection, jobs: Sequence[NewJob], events: dict[tuple[str, str], int], now: float) -> list[Placed]:
    if not jobs:
        return []
    first = _next_seq(db, "treppe_job")
    for job in jobs:
        if job.event is not None and job.event not in events:
            events[job.event] = _seq_of_event(db, job, job.event)
    rows = [_job_row(first + i, job, events.get(job.event) if job.event else None, now) for i, job in enumerate(jobs)]
    if insert_all(db, "job_insert", rows) == len(jobs):
        placed = [Placed(job.id, first + i) for i, job in enumerate(jobs)]
    else:
        placed = _judge(db, jobs, first)
    fresh = [_live_row(p.seq, job, now) for p, job in zip(placed, jobs, strict=True) if not p.duplicate]
    insert_all(db, "live_insert", fresh)
    if fresh:
        db.execute(SQL["count_add"], ("accepted", len(fresh)))
    return placed


def _seq_of_event(db: Connection, job: NewJob, event: tuple[str, str]) -> int:
    row = db.execute(SQL["event_same"], event).fetchone()
    if row is None:
        raise InvalidJob(f'job "{job.id}": its event {event[1]} of source {event[0]} is not stored. Put it along')
    return int(row[0])


def _judge(db: Connection, jobs: Sequence[NewJob], first: int) -> list[Placed]:
    ids = _json([job.id for job in jobs])
    found = {row[0]: row for row in db.execute(SQL["job_same"], (ids,))}
    return [
        Placed(job.id, first + i) if found[job.id][1] == first + i else _judged(job, found[job.id])
        for i, job in enumerate(jobs)
    ]


def _judged(job: NewJob, row: tuple[Any, ...]) -> Placed:
    _, seq, task, queue, payload, content_type, source, event = row
    same_event = source is None or (source, event) == job.event
    same_content = (payload, content_type) == (job.payload, job.content_type) and same_event
    differs = "task" if task != job.task else "queue" if queue != job.queue else "" if same_content else "content"
    return Placed(job.id, seq, duplicate=True, conflict=differs)


def _job_row(seq: int | None, job: NewJob, event: int | None, now: float) -> tuple[Any, ...]:
    return (
        seq, job.id, job.task, job.queue, job.payload, job.content_type, event, job.key, job.priority,
        REPEAT_CODE[job.repeat], job.attempts, job.crashes, _due(job, now), job.expires, job.deadline, job.keep,
        int(job.skip_dead), now,
    )  # fmt: skip


def _live_row(seq: int, job: NewJob, now: float) -> tuple[Any, ...]:
    due = _due(job, now)
    half, deadline = (None, None) if job.deadline is None else (due + job.deadline / 2, due + job.deadline)
    return (
        seq, job.queue, band_of(job.priority), job.task, due, due, REPEAT_CODE[job.repeat], job.attempts, job.crashes,
        due + job.expires, half, deadline, job.key, int(job.skip_dead),
    )  # fmt: skip


def _due(job: NewJob, now: float) -> float:
    return job.at if job.at is not None else now + job.delay


def _json(values: Sequence[object]) -> str:
    return msgspec.json.encode(values).decode()
