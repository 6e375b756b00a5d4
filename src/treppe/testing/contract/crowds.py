"""Crowds: whatever there is much of stands in nobody else's way; and clocks that step back harm nobody."""

from __future__ import annotations

from itertools import takewhile

from treppe.job import Event, State
from treppe.store.protocol import Filter, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    act,
    bury,
    claim,
    claim_ids,
    claim_one,
    event,
    finish,
    job,
    lapse,
    new_worker,
    put,
    put_many,
    state,
)


class Crowds(Contract):
    """Long lines, many suspects, stepping clocks."""

    def test_a_long_line_of_one_key_lets_other_queues_pass(self, store: Store) -> None:
        put(store, "head", queue="a", key="k")
        running = claim_one(store)
        put_many(store, 2000, "behind", queue="a", key="k")
        put(store, "other", queue="b")
        assert claim_ids(store) == ["other"]
        finish(store, running)

    def test_a_long_line_of_one_key_lets_other_keys_pass_soon(self, store: Store) -> None:
        put(store, "head", key="k")
        claim_one(store)
        put_many(store, 1200, "behind", key="k")
        put(store, "free", key="another")
        rounds = [claim(store) for _ in range(4)]
        assert [one.id for brought in rounds for one in brought.claims] == ["free"]
        before = list(takewhile(lambda brought: not brought.claims, rounds))
        assert all(brought.next_in == 0 for brought in before), "a worker would sleep although there is more to look at"

    def test_many_suspects_of_one_queue_hide_no_other_queues(self, store: Store) -> None:
        put_many(store, 150, "a", queue="a")
        put(store, "b", queue="b")
        worker = new_worker(store)
        lapse(store, *claim(store, 200, worker=worker).claims)
        assert [one.id for one in claim(store, queues=("b",), alone=True).claims] == ["b"]

    def test_suspects_of_unknown_tasks_are_not_told(self, store: Store) -> None:
        put(store, "a", task="app.unknown")
        lapse(store, *claim(store, tasks=("app.unknown",), worker=new_worker(store)).claims)
        assert not claim(store).suspects
        assert claim(store, tasks=("app.unknown",)).suspects

    def test_a_clock_that_steps_back_stops_no_claim(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", key="k")
        put(store, "b")
        bury(store, *claim(store).claims)
        act(store, Event.REVIVE, "a")
        clock.set_to(clock() - 2)
        put(store, "c")
        claim(store)
        clock.advance(3)
        claim(store)
        assert state(store, "a") is State.RUNNING

    def test_a_clock_that_steps_back_lets_a_keyed_job_be_buried(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", "b", key="k")
        taken = claim_one(store)
        clock.set_to(clock() - 1)
        bury(store, taken)
        clock.advance(2)
        assert state(store, "a") is State.DEAD
        assert claim_ids(store) == []

    def test_jobs_of_an_event_are_found_by_their_own_text(self, store: Store) -> None:
        store.put([job("one", event=("shop", "e1"))], [event("e1")])
        store.put([job("two", event=("shop", "e2"))], [event("e2")])
        found = store.find(Filter(event=("shop", "e2"), text="one")).jobs
        assert found == ()
        assert [one.id for one in store.find(Filter(event=("shop", "e2"), text="tw")).jobs] == ["two"]
