"""Upkeep: expiry and retention, in bounded rounds, of exactly what they may touch."""

from __future__ import annotations

import pytest

from treppe.job import Event, Kind, State
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    act,
    by_policy,
    claim,
    claim_ids,
    claim_one,
    defer,
    find_all,
    finish,
    into,
    put,
    put_many,
    read,
    state,
    upkeep,
    upkeep_rounds,
)

MOST_ROWS = 500


class Upkeep(Contract):
    """What one round does, and how much."""

    def test_an_empty_store_needs_none(self, store: Store) -> None:
        done = store.upkeep(by_policy)
        assert (done.lapsed, done.expired, done.promoted, done.forgotten, done.more) == (0, 0, 0, 0, False)

    def test_a_waiting_job_expires(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", expires=100)
        clock.advance(99)
        assert upkeep(store).expired == 0
        clock.advance(2)
        assert upkeep(store).expired == 1
        job = read(store, "a")
        assert (job.state, job.ended_at) == (State.DEAD, clock())
        assert [(line.event, line.kind) for line in job.history] == [(Event.EXPIRE, Kind.EXPIRED)]
        assert job.error

    def test_expiry_counts_from_the_first_due_time(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", delay=1000, expires=100)
        clock.advance(1050)
        upkeep(store)
        assert claim_ids(store) == ["a"]

    def test_a_job_that_waits_for_its_retry_expires(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", expires=100)
        defer(store, claim_one(store), delay=7200)
        clock.advance(101)
        assert upkeep(store).expired == 1

    def test_a_job_behind_its_key_expires(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", key="k")
        put(store, "b", key="k", expires=100)
        claim_one(store)
        claim_ids(store)
        clock.advance(101)
        upkeep(store)
        assert (state(store, "a"), state(store, "b")) == (State.RUNNING, State.DEAD)

    @pytest.mark.parametrize("reached", [State.RUNNING, State.HANDED_OVER, State.UNCLEAR, State.DONE, State.CANCELLED])
    def test_only_waiting_jobs_expire(self, store: Store, clock: ManualClock, reached: State) -> None:
        into(store, reached, expires=100)
        clock.advance(101)
        assert upkeep(store).expired == 0
        assert state(store, "a") is reached

    def test_a_running_job_past_its_expiry_may_still_finish(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", expires=100)
        taken = claim_one(store)
        clock.advance(1000)
        upkeep(store)
        finish(store, taken)
        assert state(store, "a") is State.DONE

    def test_a_deadline_kills_nothing(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", deadline=10)
        clock.advance(1000)
        assert upkeep(store).expired == 0
        assert claim_ids(store) == ["a"]

    def test_one_round_expires_a_bounded_number_and_says_there_is_more(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 1200, expires=10)
        clock.advance(11)
        rounds = upkeep_rounds(store)
        assert max(one.expired for one in rounds) <= MOST_ROWS
        assert sum(one.expired for one in rounds) == 1200

    def test_one_round_forgets_a_bounded_number_and_says_there_is_more(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 1200, keep=10)
        for _ in range(12):
            finish(store, *claim(store, 100).claims)
        clock.advance(11)
        rounds = upkeep_rounds(store)
        assert max(one.forgotten for one in rounds) <= MOST_ROWS
        assert sum(one.forgotten for one in rounds) == 1200
        assert find_all(store) == []

    def test_what_is_forgotten_is_gone_with_its_notes(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", keep=10)
        taken = claim_one(store)
        store.note(taken, "step", b"1")
        finish(store, taken)
        clock.advance(11)
        upkeep(store)
        assert store.get("a") is None
        assert dict(store.notes("a")) == {}
        assert find_all(store) == []

    def test_forgetting_counts_from_the_end_not_from_the_beginning(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", keep=100)
        taken = claim_one(store)
        clock.advance(5000)
        finish(store, taken)
        clock.advance(99)
        assert upkeep(store).forgotten == 0

    def test_each_job_is_kept_as_long_as_it_was_put_for(self, store: Store, clock: ManualClock) -> None:
        put(store, "short", keep=10)
        put(store, "long", keep=1000)
        finish(store, *claim(store).claims)
        clock.advance(11)
        upkeep(store)
        assert [one.id for one in find_all(store)] == ["long"]

    @pytest.mark.parametrize("reached", [State.DEAD, State.UNCLEAR])
    def test_dead_and_unclear_jobs_are_never_trimmed(self, store: Store, clock: ManualClock, reached: State) -> None:
        into(store, reached, keep=10, payload=b"kept")
        clock.advance(10 * 365 * 86400)
        assert upkeep(store).forgotten == 0
        assert (state(store, "a"), read(store, "a").payload) == (reached, b"kept")

    def test_a_revived_and_finished_job_is_kept_from_its_last_end(self, store: Store, clock: ManualClock) -> None:
        into(store, State.DEAD, keep=100)
        clock.advance(5000)
        act(store, Event.REVIVE, "a")
        finish(store, claim_one(store))
        clock.advance(99)
        assert upkeep(store).forgotten == 0
        clock.advance(2)
        assert upkeep(store).forgotten == 1

    def test_the_figures_of_ever_do_not_shrink_when_jobs_are_forgotten(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 20, keep=10)
        finish(store, *claim(store).claims)
        clock.advance(11)
        assert upkeep(store).forgotten == 20
        figures = store.backlog()
        assert (figures.accepted, figures.done, figures.open) == (20, 20, 0)

    def test_forgetting_one_life_of_an_id_leaves_the_next_alone(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", keep=10)
        finish(store, claim_one(store))
        clock.advance(11)
        upkeep(store)
        put(store, "a", keep=10)
        clock.advance(11)
        assert upkeep(store).forgotten == 0
        assert (state(store, "a"), read(store, "a").history) == (State.WAITING, ())

    def test_a_job_that_lost_its_head_while_it_was_behind_is_promoted(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 50, key="k", expires=10, skip_dead=True)
        put(store, "last", key="k")
        claim_ids(store, queues=("other",))
        clock.advance(11)
        upkeep(store)
        assert claim_ids(store) == ["last"]
