"""Acts: what people do to a job counts only on the job as they saw it, and is written into the audit trail."""

from __future__ import annotations

import pytest

from treppe.job import Event, Kind, Repeat, State
from treppe.store.protocol import Seen, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    REACHABLE,
    act,
    audit,
    bury,
    claim,
    claim_ids,
    claim_one,
    defer,
    doubt,
    find_all,
    finish,
    into,
    lapse,
    new_worker,
    put,
    put_many,
    read,
    seen,
    state,
    unchanged,
    upkeep,
)

ALLOWED = {
    Event.CANCEL: {State.WAITING, State.HANDED_OVER, State.UNCLEAR, State.DEAD},
    Event.ASK_CANCEL: {State.RUNNING},
    Event.REVIVE: {State.UNCLEAR, State.DEAD},
    Event.CONFIRM: {State.HANDED_OVER, State.UNCLEAR, State.DEAD},
    Event.BURY: {State.UNCLEAR},
}
OPEN_TO_READING = {(State.RUNNING, Event.CONFIRM), (State.RUNNING, Event.BURY), (State.HANDED_OVER, Event.BURY)}
"""Pairs the table allows to a worker or the other side; whether a human may do them too is the store's choice."""

LEGAL = [(reached, event) for event, states in ALLOWED.items() for reached in REACHABLE if reached in states]
ILLEGAL = [
    (reached, event)
    for event in Event
    for reached in REACHABLE
    if reached not in ALLOWED.get(event, set()) and (reached, event) not in OPEN_TO_READING
]
AFTER = {Event.CANCEL: State.CANCELLED, Event.REVIVE: State.WAITING, Event.CONFIRM: State.DONE, Event.BURY: State.DEAD}


class Acts(Contract):
    """Cancel, revive, confirm, bury: by hand."""

    @pytest.mark.parametrize(("reached", "event"), LEGAL)
    def test_an_act_changes_the_state(self, store: Store, reached: State, event: Event) -> None:
        into(store, reached)
        assert act(store, event, "a") == ()
        assert state(store, "a") is AFTER.get(event, State.RUNNING)

    @pytest.mark.parametrize(("reached", "event"), ILLEGAL)
    def test_an_act_in_a_wrong_state_is_refused(self, store: Store, reached: State, event: Event) -> None:
        into(store, reached)
        with unchanged(store, "a"):
            assert act(store, event, "a") == tuple(seen(store, "a"))

    @pytest.mark.parametrize(("reached", "event"), LEGAL)
    @pytest.mark.parametrize("drift", [-1, 1])
    def test_an_act_on_a_job_seen_otherwise_is_refused(
        self, store: Store, reached: State, event: Event, drift: int
    ) -> None:
        into(store, reached)
        other = Seen("a", read(store, "a").token + drift)
        with unchanged(store, "a"):
            assert store.change([other], event, "anna") == (other,)

    def test_an_act_on_a_job_that_was_claimed_meanwhile_is_refused(self, store: Store) -> None:
        into(store, State.UNCLEAR)
        saw = seen(store, "a")
        act(store, Event.REVIVE, "a", by="bert")
        claim_one(store)
        with unchanged(store, "a"):
            assert store.change(saw, Event.CANCEL, "anna") == tuple(saw)

    def test_an_act_on_an_unknown_job_is_refused(self, store: Store) -> None:
        assert store.change([Seen("nobody", 0)], Event.CANCEL, "anna") == (Seen("nobody", 0),)
        assert audit(store) == []

    def test_an_act_on_nothing_does_nothing(self, store: Store) -> None:
        assert store.change([], Event.CANCEL, "anna") == ()

    def test_an_act_on_many_says_which_were_refused(self, store: Store) -> None:
        put_many(store, 100)
        finish(store, *claim(store, 50).claims)
        refused = act(store, Event.CANCEL, *[f"job-{i}" for i in range(100)])
        assert {one.id for one in refused} == {f"job-{i}" for i in range(50)}
        assert {one.state for one in find_all(store) if int(one.id[4:]) >= 50} == {State.CANCELLED}

    def test_an_act_is_audited_with_who_what_why_and_which(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", "b", "ü")
        finish(store, claim_one(store))
        act(store, Event.CANCEL, "a", "b", "ü", by="anna", note="ordered twice “by mistake”")
        assert audit(store) == [
            {"by": "anna", "act": "cancel", "ids": ["b", "ü"], "note": "ordered twice “by mistake”", "at": clock()}
        ]

    def test_a_refused_act_is_not_audited_as_done(self, store: Store) -> None:
        into(store, State.DONE)
        act(store, Event.CANCEL, "a")
        assert audit(store) == []

    def test_the_audit_trail_is_in_order(self, store: Store) -> None:
        put(store, "a")
        bury(store, claim_one(store))
        for event in (Event.REVIVE, Event.CANCEL):
            act(store, event, "a", by=event.value)
        assert [line["act"] for line in audit(store)] == ["revive", "cancel"]

    def test_acts_stand_in_the_history_of_the_job(self, store: Store) -> None:
        put(store, "a")
        bury(store, claim_one(store), error="broken")
        act(store, Event.REVIVE, "a", by="anna", note="target repaired")
        finish(store, claim_one(store))
        history = read(store, "a").history
        assert [line.event for line in history] == [Event.BURY, Event.REVIVE, Event.FINISH]
        assert (history[1].kind, history[1].charged) == (Kind.ACT, False)

    @pytest.mark.parametrize("reached", [State.DEAD, State.UNCLEAR])
    def test_a_revived_job_begins_anew(self, store: Store, clock: ManualClock, reached: State) -> None:
        put(store, "a", attempts=3, expires=1000, repeat=Repeat.ASK)
        for _ in range(2):
            defer(store, claim_one(store), charged=True)
        taken = claim_one(store)
        (bury if reached is State.DEAD else doubt)(store, taken)
        clock.advance(5000)
        upkeep(store)
        assert act(store, Event.REVIVE, "a") == ()
        job = read(store, "a")
        assert (job.charged, job.crashes, job.claims, job.run_at) == (0, 0, 0, clock())
        assert job.expires_at == clock() + 1000
        again = claim_one(store)
        assert (again.claims, again.charged, again.attempts, again.repeat) == (1, 0, 3, Repeat.ASK)
        assert again.token > taken.token

    def test_a_revived_job_has_its_crashes_back(self, store: Store) -> None:
        put(store, "a", crashes=1)
        lapse(store, claim_one(store, worker=new_worker(store)))
        lapse(store, claim_one(store, worker=new_worker(store), alone=True))
        assert (state(store, "a"), read(store, "a").crashes) == (State.DEAD, 1)
        act(store, Event.REVIVE, "a")
        assert (read(store, "a").crashes, read(store, "a").suspect) == (0, False)
        assert claim_ids(store) == ["a"]

    def test_an_expired_job_that_is_revived_may_run(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", expires=10, payload=b"kept", key="k", priority=60)
        clock.advance(11)
        upkeep(store)
        act(store, Event.REVIVE, "a")
        taken = claim_one(store)
        assert (taken.payload, taken.key) == (b"kept", "k")

    def test_a_job_can_be_revived_again_and_again(self, store: Store) -> None:
        put(store, "a")
        for _ in range(5):
            bury(store, claim_one(store))
            assert act(store, Event.REVIVE, "a") == ()
        finish(store, claim_one(store))
        assert len(read(store, "a").history) == 11

    def test_a_revived_job_keeps_its_notes(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store)
        store.note(taken, "step:crm", b"done")
        bury(store, taken)
        act(store, Event.REVIVE, "a")
        assert claim_one(store).notes == {"step:crm": b"done"}

    def test_what_is_confirmed_by_hand_is_done(self, store: Store, clock: ManualClock) -> None:
        into(store, State.UNCLEAR)
        act(store, Event.CONFIRM, "a", note="it is in the ledger")
        assert (state(store, "a"), read(store, "a").ended_at, store.backlog().done) == (State.DONE, clock(), 1)

    def test_a_cancel_that_was_asked_for_leaves_the_handler_alone(self, store: Store) -> None:
        taken = into(store, State.RUNNING)
        act(store, Event.ASK_CANCEL, "a")
        assert taken is not None
        assert store.note(taken, "step", b"1")
        finish(store, taken)
        assert state(store, "a") is State.DONE

    def test_a_cancel_may_be_asked_for_twice(self, store: Store) -> None:
        into(store, State.RUNNING)
        act(store, Event.ASK_CANCEL, "a")
        act(store, Event.ASK_CANCEL, "a")
        assert read(store, "a").cancelling

    def test_two_people_press_and_one_is_told_it_was_too_late(self, store: Store) -> None:
        into(store, State.DEAD)
        saw = seen(store, "a")
        assert store.change(saw, Event.REVIVE, "anna") == ()
        assert store.change(saw, Event.REVIVE, "bert") == tuple(saw)
        assert [line["by"] for line in audit(store)] == ["anna"]

    @pytest.mark.parametrize("strange", ["a\x00b", "a\ud800b"])
    def test_an_act_may_be_told_in_any_words(self, store: Store, strange: str) -> None:
        """A note that cannot be written must not keep people from settling a job (akash console#3898)."""
        into(store, State.DEAD)
        assert act(store, Event.REVIVE, "a", by=strange, note=strange) == ()
        (record,) = audit(store)
        assert (record["by"], record["note"]) == ("a\ufffdb", "a\ufffdb")
        assert store.change([Seen(strange, 0)], Event.CANCEL, "anna", "") == (Seen(strange, 0),)

    @pytest.mark.parametrize("strange", ["a\x00b", "a\ud800b"])
    def test_a_worker_may_be_called_anything(self, store: Store, strange: str) -> None:
        store.enlist(77, strange, 10.0)
        assert store.renew(77, 10.0)
