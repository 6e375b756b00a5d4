"""Slots of a queue's limit, where settles come late."""

from treppe.job import Event, State
from treppe.testing.contract.paces import ScriptedPace, at_most
from treppe.testing.contract.verbs import (
    QUEUE,
    act,
    claim,
    claim_ids,
    claim_one,
    hand_over,
    lapse,
    new_worker,
    put,
    put_many,
    state,
)


def test_a_job_handed_over_after_its_lapse_counts_for_the_limit_again(store):
    put(store, "a", "b", "c")
    pace = ScriptedPace({QUEUE: at_most(1)})
    a = claim_one(store, worker=new_worker(store), pace=pace)
    lapse(store, a)
    hand_over(store, a)
    assert claim_ids(store, pace=pace) == []
    assert act(store, Event.CONFIRM, "a") == ()
    assert claim_ids(store, pace=pace) == ["b"]
    assert state(store, "a") is State.DONE


def test_it_counts_beside_one_that_has_its_slot_meanwhile(store):
    put_many(store, 5)
    pace = ScriptedPace({QUEUE: at_most(2)})
    first = claim_one(store, worker=new_worker(store), pace=pace)
    lapse(store, first)
    assert len(claim(store, 5, pace=pace).claims) == 2
    hand_over(store, first)
    assert store._database.once("SELECT count(*) FROM treppe.slot WHERE n > 0") == [(3,)]
    assert claim_ids(store, pace=pace) == []


def test_an_empty_key_and_a_limit_do_not_disturb_each_other(store):
    put(store, "a", "b", key="")
    put(store, "c", "d")
    pace = ScriptedPace({QUEUE: at_most(2)})
    assert sorted(claim_ids(store, pace=pace)) == ["a", "c"]
    assert claim_ids(store, pace=pace) == []
