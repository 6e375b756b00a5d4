"""Putting jobs and events: the unique id is the only judge of what is a duplicate.

A put is one statement and thus one transaction. A second one asks about what was there already, as late as that: only
then does everybody see what another transaction committed while we waited for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

import msgspec

from treppe.errors import InvalidJob, StoreUnavailable
from treppe.job import NewEvent, NewJob, Placed, Repeat
from treppe.store.postgres import loading
from treppe.store.postgres.database import SQL, Database, Row
from treppe.store.protocol import Plan, Put, Statement

REPEATS = (Repeat.SAFE, Repeat.LOOK, Repeat.ASK)
REPEAT_CODE = {repeat: code for code, repeat in enumerate(REPEATS)}

PATIENCE = "200ms"  # below deadlock_timeout: we give up before the server picks somebody else's transaction to fail
MOST_ROUNDS = 5

Run = Callable[[str, Sequence[Any]], list[Row]]
Asking = Generator[Statement, list[Row], list[Placed]]
Name = tuple[str, str]


def put(database: Database, jobs: Sequence[NewJob], events: Sequence[NewEvent], wake: str | None) -> Put:
    """Place events, the jobs of those that are new, and the jobs without an event. ``wake`` is what to tell others."""
    if len(jobs) >= loading.LEAST and not events and not any(job.event for job in jobs):
        with suppress(loading.Taken):
            return Put(database.write(lambda tx: loading.load(tx, jobs, REPEAT_CODE, PATIENCE, wake)))
    kept = _not_along(jobs, events)
    if kept:
        return database.write(lambda tx: carry_out(_place_later(jobs, events, kept, wake), tx.rows))
    plan = _place_with_events(jobs, events, {}, wake) if events else _place_all(jobs, wake)
    return carry_out(plan, database.once)


def plan(jobs: Sequence[NewJob], wake: str | None) -> Plan:
    """The same for somebody else's connection and transaction; it stays usable whatever the answer is."""
    if of_event := next((job for job in jobs if job.event is not None), None):
        raise InvalidJob(f'job "{of_event.id}": a job of an event is put together with it, not within a transaction')
    return Put(tuple((yield from _place(jobs, None, wake))))


def task_settings(settings: Mapping[str, object]) -> str:
    """What is kept of a task for ``treppe.enqueue()``."""
    code = REPEAT_CODE[Repeat(str(settings["repeat"]))]
    return msgspec.json.encode({**settings, "repeat": code}).decode()


def carry_out(plan: Plan, run: Run) -> Put:
    """Run the statements of a plan; its answer."""
    try:
        sql, params = next(plan)
        while True:
            sql, params = plan.send(run(sql, params))
    except StopIteration as end:
        answer: Put = end.value
        return answer


def _place_all(jobs: Sequence[NewJob], wake: str | None) -> Plan:
    return Put(tuple((yield from _place(jobs, PATIENCE, wake))))


def _place(jobs: Sequence[NewJob], patience: str | None, wake: str | None) -> Asking:
    answers: dict[int, Placed] = {}
    left = list(range(len(jobs)))
    for _ in range(MOST_ROUNDS):
        if not left:
            return [answers[i] for i in range(len(jobs))]
        rows = yield _statement([jobs[i] for i in left], patience, wake)
        placed = {row[1]: row[0] for row in rows if row[0]}
        for i in left:
            if (seq := placed.pop(jobs[i].id, None)) is not None:
                answers[i] = Placed(jobs[i].id, seq)
        left = [i for i in left if i not in answers]
        left = yield from _judge(jobs, left, answers)
    raise StoreUnavailable("the ids of these jobs come and go. Try again")


def _statement(jobs: Sequence[NewJob], patience: str | None, wake: str | None) -> Statement:
    if len(jobs) == 1:
        return SQL["put_job"], (patience, wake, *(column[0] for column in _columns(jobs)))
    return SQL["put_jobs"], (patience, wake, *_columns(jobs))


def _judge(
    jobs: Sequence[NewJob], left: list[int], answers: dict[int, Placed]
) -> Generator[Statement, list[Row], list[int]]:
    """Answer what is there already; returns what is not, for its job was forgotten in this very moment."""
    if not left:
        return []
    rows = yield SQL["job_same"], (sorted({jobs[i].id for i in left}),)
    found = {row[0]: row for row in rows}
    for i in left:
        if jobs[i].id in found:
            answers[i] = _judged(jobs[i], found[jobs[i].id])
    return [i for i in left if i not in answers]


def _place_later(jobs: Sequence[NewJob], events: Sequence[NewEvent], names: list[Name], wake: str | None) -> Plan:
    rows = yield SQL["event_hold"], _names(names)
    kept = {(source, id): seq for source, id, seq in rows}
    if lost := next((job for job in jobs if job.event in names and job.event not in kept), None):
        raise InvalidJob(
            f'job "{lost.id}": its event {" of source ".join(reversed(lost.event or ()))} is not stored. Put it along'
        )
    return (yield from _place_with_events(jobs, events, kept, wake))


def _place_with_events(
    jobs: Sequence[NewJob], events: Sequence[NewEvent], kept: dict[Name, int], wake: str | None
) -> Plan:
    places: dict[Name, int] = {}
    for n, event in enumerate(events, 1):
        places.setdefault((event.source, event.id), n)
    of = (
        [places.get(job.event, 0) if job.event else 0 for job in jobs],
        [kept.get(job.event) if job.event else None for job in jobs],
    )
    rows = yield SQL["put_events"], (PATIENCE, wake, *_event_columns(events), *_columns(jobs), *of)
    placed = {id: seq for what, seq, id, _ in rows if what == "job"}
    new_events = {n: seq for what, seq, _, n in rows if what == "event"}
    repeated = {name for name, n in places.items() if n not in new_events}
    answers: dict[int, Placed] = {}
    for i, job in enumerate(jobs):
        if job.event not in repeated and job.id in placed:
            answers[i] = Placed(job.id, placed.pop(job.id))
    placed_events = yield from _judge_events(events, new_events)
    left = yield from _judge(jobs, [i for i in range(len(jobs)) if i not in answers], answers)
    for i in left:
        answers[i] = Placed(jobs[i].id, 0, duplicate=True)
    for i, job in enumerate(jobs):
        if job.event in repeated:
            answers[i] = msgspec.structs.replace(answers[i], conflict="")
    return Put(tuple(answers[i] for i in range(len(jobs))), tuple(placed_events))


def _judge_events(events: Sequence[NewEvent], new: dict[int, int]) -> Asking:
    if len(new) == len(events):
        return [Placed(event.id, new[n]) for n, event in enumerate(events, 1)]
    names = sorted({(event.source, event.id) for n, event in enumerate(events, 1) if n not in new})
    rows = yield SQL["event_same"], _names(names)
    found = {(source, id): (seq, digest) for source, id, seq, digest in rows}
    return [
        Placed(event.id, new[n]) if n in new else _judged_event(event, *found.get((event.source, event.id), (0, b"")))
        for n, event in enumerate(events, 1)
    ]


def _judged_event(event: NewEvent, seq: int, digest: bytes) -> Placed:
    same = seq == 0 or digest == sha256(event.body).digest()
    return Placed(event.id, seq, duplicate=True, conflict="" if same else "content")


def _judged(job: NewJob, row: Row) -> Placed:
    _, seq, task, queue, digest, content_type, source, event = row
    same_event = source is None or (source, event) == job.event
    same_content = (digest, content_type) == (sha256(job.payload).digest(), job.content_type) and same_event
    differs = "task" if task != job.task else "queue" if queue != job.queue else "" if same_content else "content"
    return Placed(job.id, seq, duplicate=True, conflict=differs)


def _not_along(jobs: Sequence[NewJob], events: Sequence[NewEvent]) -> list[Name]:
    """The events of jobs that are not in the same batch."""
    along = {(event.source, event.id) for event in events}
    return sorted({job.event for job in jobs if job.event is not None and job.event not in along})


def _names(names: Sequence[Name]) -> tuple[list[str], list[str]]:
    return [source for source, _ in names], [id for _, id in names]


def _columns(jobs: Sequence[NewJob]) -> tuple[list[Any], ...]:
    return (
        [job.id for job in jobs],
        [job.task for job in jobs],
        [job.queue for job in jobs],
        [job.payload for job in jobs],
        [job.content_type for job in jobs],
        [job.key for job in jobs],
        [job.priority for job in jobs],
        [REPEAT_CODE[job.repeat] for job in jobs],
        [job.attempts for job in jobs],
        [job.crashes for job in jobs],
        [None if job.at is None else float(job.at) for job in jobs],
        [float(job.delay) for job in jobs],
        [float(job.expires) for job in jobs],
        [None if job.deadline is None else float(job.deadline) for job in jobs],
        [float(job.keep) for job in jobs],
        [job.skip_dead for job in jobs],
    )


def _event_columns(events: Sequence[NewEvent]) -> tuple[list[Any], ...]:
    return (
        [event.source for event in events],
        [event.id for event in events],
        [event.topic for event in events],
        [event.content_type for event in events],
        [msgspec.json.encode(event.headers) for event in events],
        [event.body for event in events],
    )
