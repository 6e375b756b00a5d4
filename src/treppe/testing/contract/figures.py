"""Figures: what the backlog says is what the rows are, exactly and at any time."""

from __future__ import annotations

from collections import Counter

import pytest

from treppe.job import Job, State
from treppe.store.protocol import QueueBacklog, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    QUEUE,
    REACHABLE,
    claim,
    claim_ids,
    claim_one,
    defer,
    find_all,
    finish,
    into,
    put,
    put_many,
)

WAITING_FIGURES = ("waiting", "scheduled", "retrying", "behind")
STATES = {State.RUNNING: "running", State.UNCLEAR: "unclear", State.HANDED_OVER: "handed_over", State.DEAD: "dead"}


def figures(store: Store, queue: str = QUEUE) -> QueueBacklog:
    """The figures of one queue; zeros when the store does not name it."""
    return next((one for one in store.backlog().queues if one.queue == queue), QueueBacklog(queue))


def figure_of(job: Job, now: float) -> str:
    """Which figure a job is counted in, derived from the job alone."""
    if job.state is not State.WAITING:
        return STATES.get(job.state, "")
    if job.due_at > now:
        return "scheduled"
    if job.behind is not None:
        return "behind"
    return "waiting" if job.run_at is None or job.run_at <= now else "retrying"


def assert_figures_equal_the_rows(store: Store, now: float) -> None:
    """Count every job by hand and compare."""
    jobs = find_all(store)
    for queue in {job.queue for job in jobs} | {one.queue for one in store.backlog().queues}:
        rows = [job for job in jobs if job.queue == queue]
        counted = Counter(figure_of(job, now) for job in rows)
        told = figures(store, queue)
        for name in (*WAITING_FIGURES, *STATES.values()):
            assert getattr(told, name) == counted[name], f"{name} of {queue}: {told}"
        ages = [now - job.due_at for job in rows if job.state is State.WAITING and job.due_at <= now]
        assert told.oldest_age == (pytest.approx(max(ages), abs=0.01) if ages else None)


class Figures(Contract):
    """Counts and ages per queue, and the one number."""

    def test_an_empty_store_has_nothing(self, store: Store, clock: ManualClock) -> None:
        told = store.backlog()
        assert (told.at, told.open, told.accepted, told.done, told.oldest_age) == (clock(), 0, 0, 0, None)

    @pytest.mark.parametrize("reached", REACHABLE)
    def test_every_state_is_counted_in_its_place(self, store: Store, clock: ManualClock, reached: State) -> None:
        into(store, reached)
        told = figures(store)
        name = "waiting" if reached is State.WAITING else STATES.get(reached)
        counted = {field: getattr(told, field) for field in (*WAITING_FIGURES, *STATES.values())}
        assert {field for field, count in counted.items() if count} == ({name} if name else set())
        assert_figures_equal_the_rows(store, clock())

    def test_the_reasons_to_wait_are_told_apart(self, store: Store, clock: ManualClock) -> None:
        put(store, "scheduled", delay=3600)
        put(store, "retrying")
        defer(store, claim_one(store), delay=60)
        put(store, "head", "behind", "behind too", key="k")
        claim_ids(store)
        put(store, "waiting")
        told = figures(store)
        assert (told.waiting, told.scheduled, told.retrying, told.behind, told.running) == (1, 1, 1, 2, 1)
        assert_figures_equal_the_rows(store, clock())

    def test_time_alone_moves_jobs_between_the_figures(self, store: Store, clock: ManualClock) -> None:
        put(store, "retrying")
        defer(store, claim_one(store), delay=60)
        put(store, "scheduled", delay=30)
        clock.advance(30)
        assert (figures(store).waiting, figures(store).scheduled, figures(store).retrying) == (1, 0, 1)
        clock.advance(30)
        assert (figures(store).waiting, figures(store).scheduled, figures(store).retrying) == (2, 0, 0)

    def test_the_age_counts_from_the_first_due_time_of_the_oldest_that_waits(
        self, store: Store, clock: ManualClock
    ) -> None:
        put(store, "scheduled", delay=1000)
        put(store, "a", delay=10)
        assert figures(store).oldest_age is None
        clock.advance(60)
        assert figures(store).oldest_age == pytest.approx(50, abs=0.01)
        a = claim_one(store)
        assert figures(store).oldest_age is None
        defer(store, a, delay=600)
        clock.advance(40)
        assert figures(store).oldest_age == pytest.approx(90, abs=0.01)
        assert store.backlog().oldest_age == pytest.approx(90, abs=0.01)

    def test_a_job_behind_its_key_grows_old_too(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", "b", key="k")
        claim_ids(store)
        clock.advance(70)
        assert figures(store).oldest_age == pytest.approx(70, abs=0.01)

    def test_the_one_number_counts_what_is_not_at_its_end(self, store: Store) -> None:
        for reached in REACHABLE:
            into(store, reached, reached.value, queue=reached.value)
        told = store.backlog()
        assert (told.open, told.accepted, told.done, told.total("dead")) == (4, 7, 1, 1)

    def test_each_queue_has_figures_of_its_own(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 3, "x", queue="x")
        clock.advance(5)
        put_many(store, 2, "y", queue="y")
        claim_one(store, queues=("y",))
        assert figures(store, "x").waiting == 3
        assert figures(store, "x").oldest_age == pytest.approx(5, abs=0.01)
        assert (figures(store, "y").waiting, figures(store, "y").running) == (1, 1)

    def test_duplicates_are_not_accepted_twice(self, store: Store) -> None:
        put(store, "a", "b", "a")
        put(store, "b", "c")
        assert store.backlog().accepted == 3

    def test_done_counts_what_is_done_and_nothing_else(self, store: Store) -> None:
        for reached in REACHABLE:
            into(store, reached, reached.value, queue=reached.value)
        put_many(store, 150, "more", queue="more")
        for _ in range(2):
            finish(store, *claim(store, 100, queues=("more",)).claims)
        assert store.backlog().done == 151
