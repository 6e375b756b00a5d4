"""The state machine: every row of the table is driven by a real job, and nothing beside the table happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from treppe.job import TRANSITIONS, Event, Repeat, State, Transition, When
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    REACHABLE,
    SETTLEMENTS,
    act,
    claim,
    claim_ids,
    claim_one,
    confirmed,
    deferred,
    finish,
    hand_over,
    into,
    lapse,
    new_worker,
    put,
    read,
    state,
    unchanged,
    upkeep,
)

NOT_YET = {row for row in TRANSITIONS if row.event is Event.MOVE or row.when is When.LOOKING}
"""Rows that need what Treppe does not have yet: a relay between two stores, and workers that look first."""

Drive = Callable[[Store, ManualClock], None]


def by_claim(store: Store, clock: ManualClock) -> None:
    """Waiting to running."""
    into(store, State.WAITING)
    claim_one(store)


def by_time(store: Store, clock: ManualClock) -> None:
    """Waiting to dead."""
    into(store, State.WAITING, expires=10)
    clock.advance(11)
    upkeep(store)


def by_hand(source: State, event: Event) -> Drive:
    """A human's act on a job in that state."""

    def drive(store: Store, clock: ManualClock) -> None:
        into(store, source)
        assert act(store, event, "a") == ()

    return drive


def by_settle(event: Event) -> Drive:
    """The worker, or the other side by the worker's token, ends a running job."""

    def drive(store: Store, clock: ManualClock) -> None:
        taken = into(store, State.RUNNING)
        assert taken is not None
        settlement = confirmed(taken) if event is Event.CONFIRM else SETTLEMENTS[event](taken)
        assert store.settle([settlement]) == ()

    return drive


def by_the_other_side(event: Event) -> Drive:
    """The other side ends a job that was handed over."""

    def drive(store: Store, clock: ManualClock) -> None:
        taken = into(store, State.RUNNING)
        assert taken is not None
        hand_over(store, taken)
        settlement = confirmed(taken) if event is Event.CONFIRM else SETTLEMENTS[event](taken)
        assert store.settle([settlement]) == ()

    return drive


def by_silence(store: Store, clock: ManualClock) -> None:
    """Handed over to unclear."""
    put(store, "a")
    hand_over(store, claim_one(store), confirm_within=10)
    clock.advance(11)
    upkeep(store)


def by_flag(store: Store, clock: ManualClock) -> None:
    """A defer becomes a cancel."""
    taken = into(store, State.RUNNING)
    act(store, Event.ASK_CANCEL, "a")
    assert taken is not None
    assert store.settle([deferred(taken)]) == ()


def by_death(store: Store, clock: ManualClock) -> None:
    """The worker's lease ran out."""
    put(store, "a")
    lapse(store, claim_one(store, worker=new_worker(store)))


def by_late_settle(repeat: Repeat, event: Event) -> Drive:
    """The worker settles after its lease ran out."""

    def drive(store: Store, clock: ManualClock) -> None:
        put(store, "a", repeat=repeat)
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        assert state(store, "a") is (State.WAITING if repeat is Repeat.SAFE else State.UNCLEAR)
        settlement = confirmed(taken) if event is Event.CONFIRM else SETTLEMENTS[event](taken)
        assert store.settle([settlement]) == ()

    return drive


HUMAN = {
    (State.WAITING, Event.CANCEL),
    (State.HANDED_OVER, Event.CANCEL),
    (State.UNCLEAR, Event.CANCEL),
    (State.DEAD, Event.CANCEL),
    (State.RUNNING, Event.ASK_CANCEL),
    (State.UNCLEAR, Event.CONFIRM),
    (State.UNCLEAR, Event.REVIVE),
    (State.UNCLEAR, Event.BURY),
    (State.DEAD, Event.REVIVE),
    (State.DEAD, Event.CONFIRM),
}


def driver(row: Transition) -> Drive | None:
    """How a real job is taken through the row; None when nothing here can."""
    special: dict[tuple[State, Event], Drive] = {
        (State.WAITING, Event.CLAIM): by_claim,
        (State.WAITING, Event.EXPIRE): by_time,
        (State.RUNNING, Event.CANCEL): by_flag,
        (State.RUNNING, Event.LAPSE): by_death,
        (State.HANDED_OVER, Event.DOUBT): by_silence,
    }
    if (row.source, row.event) in special:
        return special[row.source, row.event]
    if (row.source, row.event) in HUMAN:
        return by_hand(row.source, row.event)
    if row.when is When.LATE:
        return by_late_settle(Repeat.SAFE if row.source is State.WAITING else Repeat.ASK, row.event)
    if row.source is State.RUNNING and row not in NOT_YET:
        return by_settle(row.event)
    return by_the_other_side(row.event) if row.source is State.HANDED_OVER and row not in NOT_YET else None


DRIVEN = [row for row in TRANSITIONS if driver(row)]
CLAIMABLE = {State.WAITING}


class States(Contract):
    """Every row, and nothing but the rows."""

    def test_every_row_is_driven_or_declared(self) -> None:
        assert {*DRIVEN, *NOT_YET} == set(TRANSITIONS)
        assert not set(DRIVEN) & NOT_YET

    @pytest.mark.parametrize("row", DRIVEN, ids=lambda row: f"{row.source}-{row.event}-{row.when.name.lower()}")
    def test_a_real_job_goes_through_the_row(self, store: Store, clock: ManualClock, row: Transition) -> None:
        drive = driver(row)
        assert drive is not None
        drive(store, clock)
        assert state(store, "a") is row.target

    @pytest.mark.parametrize("reached", [reached for reached in REACHABLE if reached not in CLAIMABLE])
    def test_nothing_but_a_waiting_job_is_claimed(self, store: Store, reached: State) -> None:
        into(store, reached)
        with unchanged(store, "a"):
            assert claim_ids(store) == []
            assert claim_ids(store, alone=True) == []

    @pytest.mark.parametrize("reached", REACHABLE)
    def test_upkeep_alone_changes_no_state(self, store: Store, reached: State) -> None:
        into(store, reached)
        with unchanged(store, "a"):
            upkeep(store)

    @pytest.mark.parametrize("final", [State.DONE, State.CANCELLED])
    def test_a_final_state_is_final(self, store: Store, clock: ManualClock, final: State) -> None:
        taken = into(store, final, keep=10_000)
        before = read(store, "a")
        for event in Event:
            act(store, event, "a")
        if taken is not None:
            store.settle([end(taken) for end in (*SETTLEMENTS.values(), confirmed)])
        clock.advance(5000)
        upkeep(store)
        claim(store)
        assert read(store, "a") == before

    @pytest.mark.parametrize("event", [*SETTLEMENTS, Event.CONFIRM])
    def test_a_job_that_waits_for_its_retry_cannot_be_settled(self, store: Store, event: Event) -> None:
        taken = into(store, State.RUNNING)
        assert taken is not None
        assert store.settle([deferred(taken, delay=60)]) == ()
        build = confirmed if event is Event.CONFIRM else SETTLEMENTS[event]
        with unchanged(store, "a"):
            assert store.settle([build(taken)]) != ()

    @pytest.mark.parametrize("event", [Event.CLAIM, Event.EXPIRE, Event.LAPSE, Event.REVIVE, Event.ASK_CANCEL])
    def test_a_settle_cannot_do_what_is_no_end(self, store: Store, event: Event) -> None:
        taken = into(store, State.RUNNING)
        assert taken is not None
        settlement = deferred(taken)
        settlement.event = event
        with unchanged(store, "a"):
            assert store.settle([settlement]) == (settlement,)

    def test_a_running_job_is_not_cancelled_without_asking(self, store: Store) -> None:
        taken = into(store, State.RUNNING)
        assert taken is not None
        with unchanged(store, "a"):
            assert act(store, Event.CANCEL, "a") != ()
        finish(store, taken)
