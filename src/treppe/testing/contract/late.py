"""Late settles: a worker whose lease ran out may still say how it ended, while nobody has claimed since."""

from __future__ import annotations

import pytest

from treppe.job import Claim, Event, Repeat, Settlement, State
from treppe.store.protocol import Store
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    ALICE,
    BOB,
    SETTLEMENTS,
    act,
    bury,
    claim_one,
    confirmed,
    deferred,
    doubted,
    finish,
    finished,
    lapse,
    new_worker,
    put,
    read,
    state,
    unchanged,
)

LATE_ENDS = {
    Event.FINISH: State.DONE,
    Event.DEFER: State.WAITING,
    Event.BURY: State.DEAD,
    Event.HAND_OVER: State.HANDED_OVER,
    Event.CONFIRM: State.DONE,
}


class Late(Contract):
    """The last token may still settle while nobody has claimed since."""

    @pytest.mark.parametrize("end", LATE_ENDS)
    def test_a_late_settle_counts(self, store: Store, end: Event) -> None:
        put(store, "a")
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        assert store.settle([late(taken, end)]) == ()
        job = read(store, "a")
        assert (job.state, job.suspect) == (LATE_ENDS[end], False)

    @pytest.mark.parametrize("end", LATE_ENDS)
    def test_a_late_settle_of_an_unclear_job_counts(self, store: Store, end: Event) -> None:
        put(store, "a", repeat=Repeat.ASK)
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        assert store.settle([late(taken, end)]) == ()
        assert state(store, "a") is LATE_ENDS[end]

    def test_a_late_settle_takes_the_crash_back(self, store: Store) -> None:
        put(store, "a")
        lapse(store, claim_one(store, worker=new_worker(store)))
        suspect = claim_one(store, worker=new_worker(store), alone=True)
        lapse(store, suspect)
        assert read(store, "a").crashes == 1
        assert store.settle([deferred(suspect)]) == ()
        assert read(store, "a").crashes == 0

    def test_a_timely_settle_of_the_next_claim_takes_no_crash_back(self, store: Store) -> None:
        put(store, "a")
        lapse(store, claim_one(store, worker=new_worker(store)))
        lapse(store, claim_one(store, worker=new_worker(store), alone=True))
        assert store.settle([deferred(claim_one(store, alone=True))]) == ()
        assert read(store, "a").crashes == 1

    def test_a_late_doubt_is_refused(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        with unchanged(store, "a"):
            assert store.settle([doubted(taken)]) != ()

    @pytest.mark.parametrize("end", LATE_ENDS)
    def test_a_late_settle_is_refused_once_somebody_claimed_since(self, store: Store, end: Event) -> None:
        put(store, "a")
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        claim_one(store, worker=BOB, alone=True)
        with unchanged(store, "a"):
            assert store.settle([late(taken, end)]) != ()

    @pytest.mark.parametrize("end", LATE_ENDS)
    def test_a_late_settle_by_another_worker_is_refused(self, store: Store, end: Event) -> None:
        put(store, "a")
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        taken.worker = ALICE
        with unchanged(store, "a"):
            assert store.settle([late(taken, end)]) != ()

    @pytest.mark.parametrize("end", LATE_ENDS)
    def test_a_late_settle_counts_once(self, store: Store, end: Event) -> None:
        put(store, "a")
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        store.settle([late(taken, end)])
        again = Event.BURY if end is not Event.HAND_OVER else Event.FINISH
        with unchanged(store, "a"):
            assert store.settle([late(taken, again)]) != ()

    @pytest.mark.parametrize("human", [Event.CANCEL, Event.REVIVE, Event.CONFIRM, Event.BURY])
    def test_a_late_settle_after_a_human_decided_is_refused(self, store: Store, human: Event) -> None:
        put(store, "a", repeat=Repeat.ASK)
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        assert act(store, human, "a") == ()
        with unchanged(store, "a"):
            assert store.settle([finished(taken)]) != ()

    def test_a_late_settle_of_what_the_crashes_buried_is_refused(self, store: Store) -> None:
        put(store, "a", crashes=1)
        lapse(store, claim_one(store, worker=new_worker(store)))
        suspect = claim_one(store, worker=new_worker(store), alone=True)
        lapse(store, suspect)
        with unchanged(store, "a"):
            assert store.settle([finished(suspect)]) != ()
        assert state(store, "a") is State.DEAD

    def test_a_late_defer_honours_the_cancel_that_was_asked_for(self, store: Store) -> None:
        put(store, "a", repeat=Repeat.ASK)
        taken = claim_one(store, worker=new_worker(store))
        act(store, Event.ASK_CANCEL, "a")
        lapse(store, taken)
        assert store.settle([deferred(taken)]) == ()
        assert state(store, "a") is State.CANCELLED

    def test_late_and_timely_settles_go_in_one_batch(self, store: Store) -> None:
        put(store, "late", "timely")
        first, second = claim_one(store, worker=new_worker(store)), claim_one(store)
        lapse(store, first)
        finish(store, second, first)
        assert (state(store, "late"), state(store, "timely")) == (State.DONE, State.DONE)

    def test_a_late_settle_is_added_to_the_history(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        bury(store, taken, error="late")
        assert [line.event for line in read(store, "a").history] == [Event.LAPSE, Event.BURY]


def late(taken: Claim, end: Event) -> Settlement:
    """A settlement that comes after the lapse."""
    build = confirmed if end is Event.CONFIRM else SETTLEMENTS[end]
    return build(taken)
