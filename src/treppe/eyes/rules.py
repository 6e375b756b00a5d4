"""What the alert rules look at: dead and unclear jobs, deadlines, held queues. Bounded work per look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from treppe.eyes.episode import Finding
from treppe.eyes.measure import QueueFigures, Summary
from treppe.eyes.tell import Sight
from treppe.job import Job, State
from treppe.store.protocol import MAX_BATCH, Filter, Store

LATE: Final = {"late_50": 0.5, "late_100": 1.0}
"""The rules about deadlines, and the share of the time that must be used up."""


def look(store: Store, summary: Summary, recent: float) -> list[Sight]:
    """What there is to see now, whether or not anybody wants to be told.

    At most 500 jobs are looked at per rule, besides the exact counts of *summary*; those that died within the
    last *recent* seconds come before all others.
    """
    return [
        _dead(store, summary, recent),
        _unclear(store, summary),
        *(_late(store, rule) for rule in LATE),
        *(_held(queue) for queue in summary.queues if queue.held and not queue.paused),
    ]


def _dead(store: Store, summary: Summary, recent: float) -> Sight:
    if not summary.dead:
        return Sight("dead", Finding(False))
    young = Filter(states=(State.DEAD,), ended_after=summary.at - recent)
    jobs = {job.seq: job for wanted in (young, Filter(states=(State.DEAD,))) for job in _found(store, wanted)}
    since = min((job.ended_at for job in jobs.values() if job.ended_at is not None), default=None)
    return _counted("dead", jobs.values(), summary.dead, since)


def _unclear(store: Store, summary: Summary) -> Sight:
    jobs = _found(store, Filter(states=(State.UNCLEAR,))) if summary.unclear else ()
    return _counted("unclear", jobs, summary.unclear)


def _late(store: Store, rule: str) -> Sight:
    jobs = _found(store, Filter(late=LATE[rule]))
    marks = tuple((job.seq, 0) for job in jobs)
    return Sight(rule, Finding(bool(jobs), len(jobs), marks), jobs, more=len(jobs) == MAX_BATCH)


def _counted(rule: str, jobs: Iterable[Job], counted: int, since: float | None = None) -> Sight:
    """The store's count may be a few seconds older than the jobs; it matters where not all could be looked at."""
    jobs = tuple(jobs)
    total = len(jobs) if len(jobs) < MAX_BATCH else max(counted, len(jobs))
    marks = tuple((job.seq, job.token) for job in jobs)
    return Sight(rule, Finding(bool(jobs), total, marks, since), jobs)


def _found(store: Store, wanted: Filter) -> tuple[Job, ...]:
    return store.find(wanted, n=MAX_BATCH).jobs


def _held(queue: QueueFigures) -> Sight:
    finding = Finding(True, 1, since=queue.since, lasting=True)
    return Sight("held", finding, queue=queue.queue, why=queue.why, resumes_at=queue.resumes_at)
