"""Slots: a queue's concurrency limit holds over all workers, and no crash makes it drift."""

from __future__ import annotations

import random

import pytest

from treppe.job import Claim, Event, Grant, State
from treppe.store.protocol import Filter, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.paces import ScriptedPace, at_most
from treppe.testing.contract.verbs import (
    QUEUE,
    act,
    bury,
    claim,
    claim_ids,
    claim_one,
    confirm,
    defer,
    doubt,
    find_all,
    finish,
    finished,
    hand_over,
    lapse,
    new_worker,
    put,
    put_many,
)

FREEING = {"done": finish, "dead": bury, "unclear": doubt}


def limited(slots: int) -> ScriptedPace:
    """A pace that grants whatever is wanted: only the store can keep the limit."""
    return ScriptedPace({QUEUE: at_most(slots)})


def in_flight(store: Store) -> int:
    """Jobs of the queue that hold a slot by rights."""
    return len(find_all(store, Filter((State.RUNNING, State.HANDED_OVER), QUEUE)))


class Slots(Contract):
    """Limits kept by uniqueness."""

    @pytest.mark.parametrize("slots", [1, 2, 7])
    def test_never_more_than_the_limit_run(self, store: Store, slots: int) -> None:
        put_many(store, 20)
        pace = limited(slots)
        for _ in range(5):
            claim(store, 10, pace=pace)
        assert in_flight(store) == slots

    def test_a_claim_says_that_it_holds_a_slot(self, store: Store) -> None:
        put(store, "a")
        assert claim_one(store, pace=limited(1)).slotted

    def test_a_queue_with_a_rate_alone_has_no_slots(self, store: Store) -> None:
        put(store, "a")
        assert not claim_one(store, pace=ScriptedPace({QUEUE: lambda asked: Grant(asked.want)})).slotted

    def test_the_grant_is_told_how_many_are_in_flight(self, store: Store) -> None:
        put_many(store, 10)
        pace = limited(5)
        assert len(claim(store, 3, pace=pace).claims) == 3
        assert pace.asked[0].running == 0
        hand_over(store, claim_one(store, pace=pace))
        asked = len(pace.asked)
        claim(store, 1, pace=pace)
        assert pace.asked[asked].running == 4

    @pytest.mark.parametrize("end", FREEING)
    def test_an_end_frees_its_slot(self, store: Store, end: str) -> None:
        put(store, "a", "b", "c")
        pace = limited(1)
        FREEING[end](store, claim_one(store, pace=pace))
        assert claim_ids(store, pace=pace) == ["b"]
        assert claim_ids(store, pace=pace) == []

    def test_a_retry_frees_its_slot_while_it_waits(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", "b")
        pace = limited(1)
        defer(store, claim_one(store, pace=pace), delay=60)
        b = claim_one(store, pace=pace)
        clock.advance(60)
        assert (b.id, claim_ids(store, pace=pace)) == ("b", [])
        finish(store, b)
        assert claim_ids(store, pace=pace) == ["a"]

    def test_the_slot_is_free_for_the_claim_that_settles(self, store: Store) -> None:
        put_many(store, 10)
        pace = limited(2)
        claims, done = claim(store, 2, pace=pace).claims, 0
        for _ in range(5):
            done += len(claims)
            assert in_flight(store) <= 2
            claims = claim(store, 2, pace=pace, settling=[finished(one) for one in claims]).claims
        assert done == 10

    def test_a_job_handed_over_keeps_its_slot_until_it_is_confirmed(self, store: Store) -> None:
        put(store, "a", "b")
        pace = limited(1)
        a = claim_one(store, pace=pace)
        hand_over(store, a)
        assert claim_ids(store, pace=pace) == []
        confirm(store, a)
        assert claim_ids(store, pace=pace) == ["b"]

    def test_a_job_handed_over_that_is_cancelled_frees_its_slot(self, store: Store) -> None:
        put(store, "a", "b")
        pace = limited(1)
        hand_over(store, claim_one(store, pace=pace))
        act(store, Event.CANCEL, "a")
        assert claim_ids(store, pace=pace) == ["b"]

    def test_a_running_job_that_is_confirmed_frees_its_slot(self, store: Store) -> None:
        put(store, "a", "b")
        pace = limited(1)
        confirm(store, claim_one(store, pace=pace))
        assert claim_ids(store, pace=pace) == ["b"]

    def test_a_lapse_frees_the_slot(self, store: Store) -> None:
        put(store, "a", "b")
        pace = limited(1)
        lapse(store, claim_one(store, pace=pace, worker=new_worker(store)))
        assert claim_ids(store, pace=pace) == ["b"]

    def test_a_suspect_takes_a_slot_like_any_other(self, store: Store) -> None:
        put(store, "a", "b")
        pace = limited(1)
        lapse(store, claim_one(store, pace=pace, worker=new_worker(store)))
        b = claim_one(store, pace=pace)
        assert claim_ids(store, pace=pace, alone=True) == []
        finish(store, b)
        assert claim_ids(store, pace=pace, alone=True) == ["a"]

    def test_a_refused_settle_frees_no_slot(self, store: Store) -> None:
        put(store, "a", "b", "c")
        pace = limited(1)
        first = claim_one(store, pace=pace)
        finish(store, first)
        claim_one(store, pace=pace)
        assert store.settle([finished(first)]) != ()
        assert claim_ids(store, pace=pace) == []

    def test_a_limit_of_one_queue_does_not_count_another(self, store: Store) -> None:
        put(store, "a", "b")
        put(store, "c", "d", queue="other")
        pace = ScriptedPace({QUEUE: at_most(1), "other": at_most(1)})
        assert sorted(id for _ in range(4) for id in claim_ids(store, pace=pace)) == ["a", "c"]

    def test_a_limit_that_shrinks_lets_running_jobs_end(self, store: Store) -> None:
        put_many(store, 10)
        many = claim(store, 4, pace=limited(4)).claims
        assert claim_ids(store, pace=limited(2)) == []
        finish(store, *many[:2])
        assert claim_ids(store, pace=limited(2)) == []
        finish(store, many[2])
        assert len(claim_ids(store, pace=limited(2))) == 1

    def test_a_limit_that_grows_is_used_at_once(self, store: Store) -> None:
        put_many(store, 10)
        claim(store, 10, pace=limited(2))
        assert len(claim_ids(store, pace=limited(5))) == 3

    def test_a_job_behind_its_key_takes_no_slot(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        put(store, "c")
        assert sorted(id for _ in range(3) for id in claim_ids(store, pace=limited(2))) == ["a", "c"]

    @pytest.mark.parametrize("seed", range(3))
    def test_nothing_drifts_in_a_thousand_random_steps(self, store: Store, seed: int) -> None:
        roll, pace = random.Random(seed), limited(3)
        put_many(store, 500, attempts=10_000)
        held: list[Claim] = []
        for _ in range(1000):
            for _ in range(roll.randint(0, 3)):
                held += claim(store, 1, pace=pace, worker=new_worker(store)).claims
            assert in_flight(store) <= 3
            if held:
                roll.choice(ENDS)(store, held.pop(roll.randrange(len(held))))
        finish(store, *held)
        assert in_flight(store) == 0
        put_many(store, 10, "fresh")
        assert len(claim(store, 10, pace=pace).claims) == 3


def confirmed_later(store: Store, claim: Claim) -> None:
    """Handed over, and confirmed by the other side."""
    hand_over(store, claim)
    confirm(store, claim)


def settled_late(store: Store, claim: Claim) -> None:
    """Lapsed, and settled by its worker after all."""
    lapse(store, claim)
    finish(store, claim)


def lost(store: Store, claim: Claim) -> None:
    """Lapsed for good; a human throws it away."""
    lapse(store, claim)
    assert act(store, Event.CANCEL, claim.id) == ()


ENDS = (finish, defer, bury, doubt, confirmed_later, settled_late, lost)
