"""Fencing: only the living claim, named by its token and worker, may write; all else changes nothing and is told."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from treppe.job import Claim, Event, Settlement, State
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    ALICE,
    BOB,
    SETTLEMENTS,
    act,
    bury,
    claim,
    claim_ids,
    claim_one,
    confirm,
    defer,
    finish,
    finished,
    hand_over,
    lapse,
    new_worker,
    put,
    put_many,
    read,
    state,
    unchanged,
    upkeep,
)

EVERY_END = list(SETTLEMENTS)


def settled(claim: Claim, end: Event) -> Settlement:
    """A settlement of that event which would leave traces in every corner."""
    return SETTLEMENTS[end](claim, error="should not be written", result=b"nor this", charged=True, delay=77)


def another_worker(claim: Claim) -> Claim:
    """The same claim, shown by somebody else."""
    return msgspec.structs.replace(claim, worker=BOB if claim.worker == ALICE else ALICE)


def an_older_token(claim: Claim) -> Claim:
    """A claim of before."""
    return msgspec.structs.replace(claim, token=claim.token - 1)


def a_token_of_the_future(claim: Claim) -> Claim:
    """A claim nobody was given yet."""
    return msgspec.structs.replace(claim, token=claim.token + 1)


def another_job(claim: Claim) -> Claim:
    """A claim of a job that does not exist."""
    return msgspec.structs.replace(claim, seq=claim.seq + 1_000_000)


FORGERIES = [another_worker, an_older_token, a_token_of_the_future, another_job]


class Fencing(Contract):
    """Settles, notes and leases that no longer count."""

    @pytest.mark.parametrize("end", EVERY_END)
    @pytest.mark.parametrize("forge", FORGERIES)
    def test_a_settle_with_another_token_worker_or_job_is_refused(
        self, store: Store, forge: Callable[[Claim], Claim], end: Event
    ) -> None:
        put(store, "a")
        settlement = settled(forge(claim_one(store)), end)
        with unchanged(store, "a"):
            assert store.settle([settlement]) == (settlement,)

    @pytest.mark.parametrize("end", EVERY_END)
    def test_a_settle_of_an_earlier_claim_is_refused_while_a_later_one_runs(self, store: Store, end: Event) -> None:
        put(store, "a")
        first = claim_one(store)
        defer(store, first)
        claim_one(store)
        with unchanged(store, "a"):
            assert store.settle([settled(first, end)]) != ()

    @pytest.mark.parametrize("second", EVERY_END)
    @pytest.mark.parametrize("first", [Event.FINISH, Event.DEFER, Event.BURY])
    def test_a_claim_is_settled_once(self, store: Store, first: Event, second: Event) -> None:
        put(store, "a")
        taken = claim_one(store)
        assert store.settle([SETTLEMENTS[first](taken)]) == ()
        with unchanged(store, "a"):
            assert store.settle([settled(taken, second)]) != ()

    @pytest.mark.parametrize("second", [Event.FINISH, Event.DEFER, Event.HAND_OVER, Event.DOUBT])
    def test_a_worker_that_doubted_has_had_its_say(self, store: Store, second: Event) -> None:
        put(store, "a")
        taken = claim_one(store)
        store.settle([SETTLEMENTS[Event.DOUBT](taken)])
        with unchanged(store, "a"):
            assert store.settle([settled(taken, second)]) != ()

    @pytest.mark.parametrize("second", [Event.FINISH, Event.HAND_OVER])
    def test_a_worker_that_handed_over_cannot_say_done(self, store: Store, second: Event) -> None:
        put(store, "a")
        taken = claim_one(store)
        hand_over(store, taken)
        with unchanged(store, "a"):
            assert store.settle([settled(taken, second)]) != ()

    @pytest.mark.parametrize("end", EVERY_END)
    def test_a_settle_after_the_other_side_confirmed_is_refused(self, store: Store, end: Event) -> None:
        put(store, "a")
        taken = claim_one(store)
        confirm(store, taken)
        with unchanged(store, "a"):
            assert store.settle([settled(taken, end)]) != ()

    def test_two_settles_of_one_claim_in_one_batch_count_once(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store)
        first, second = finished(taken, result=b"1"), settled(taken, Event.BURY)
        assert store.settle([first, second]) == (second,)
        assert (state(store, "a"), read(store, "a").result) == (State.DONE, b"1")
        assert len(read(store, "a").history) == 1

    @pytest.mark.parametrize("size", [2, 100])
    def test_refused_ones_do_not_hinder_the_others_of_their_batch(self, store: Store, size: int) -> None:
        put_many(store, size)
        claims = claim(store, size).claims
        stale = {one.id for one in claims[::2]}
        batch = [finished(another_worker(one) if one.id in stale else one) for one in claims]
        assert {one.claim.id for one in store.settle(batch)} == stale
        for one in claims:
            assert state(store, one.id) is (State.RUNNING if one.id in stale else State.DONE)

    def test_nothing_to_settle_is_nothing_refused(self, store: Store) -> None:
        assert store.settle([]) == ()

    def test_a_claim_settles_first_and_says_what_it_refused(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        a = claim_one(store)
        stale = settled(another_worker(a), Event.BURY)
        brought = claim(store, settling=[stale, finished(a)])
        assert brought.refused == (stale,)
        assert [one.id for one in brought.claims] == ["b"]

    def test_a_refused_settle_does_not_free_what_others_hold(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        a = claim_one(store)
        assert claim_ids(store, settling=[finished(another_worker(a))]) == []
        assert read(store, "b").behind == "a"

    def test_a_job_deferred_in_a_claim_may_be_claimed_by_it_again(self, store: Store) -> None:
        put(store, "a")
        first = claim_one(store)
        (second,) = claim(store, settling=[SETTLEMENTS[Event.DEFER](first)]).claims
        assert second.token > first.token

    @pytest.mark.parametrize("forge", FORGERIES)
    def test_a_note_with_another_token_worker_or_job_is_not_written(
        self, store: Store, forge: Callable[[Claim], Claim]
    ) -> None:
        put(store, "a")
        taken = claim_one(store)
        assert store.note(taken, "step", b"true")
        with unchanged(store, "a"):
            assert not store.note(forge(taken), "step", b"false")
            assert not store.note(forge(taken), "step", None)
            assert not store.note(forge(taken), "other", b"false")

    @pytest.mark.parametrize("end", EVERY_END)
    def test_a_note_after_the_settle_is_not_written(self, store: Store, end: Event) -> None:
        put(store, "a")
        taken = claim_one(store)
        store.settle([SETTLEMENTS[end](taken)])
        with unchanged(store, "a"):
            assert not store.note(taken, "step", b"1")

    def test_a_note_of_a_claim_that_lapsed_is_not_written(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store, worker=new_worker(store))
        lapse(store, taken)
        with unchanged(store, "a"):
            assert not store.note(taken, "step", b"1")

    @pytest.mark.parametrize("value", [b"", b"\0", b"\xff" * 3, b"x" * 300_000])
    def test_notes_are_bytes_under_a_name(self, store: Store, value: bytes) -> None:
        put(store, "a")
        taken = claim_one(store)
        assert store.note(taken, "ä%_'\"", value)
        assert store.note(taken, "other", b"2")
        assert dict(store.notes("a")) == {"ä%_'\"": value, "other": b"2"}

    def test_a_note_is_overwritten_and_removed(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store)
        store.note(taken, "progress", b"1")
        store.note(taken, "progress", b"2")
        assert dict(store.notes("a")) == {"progress": b"2"}
        assert store.note(taken, "progress", None)
        assert store.note(taken, "never there", None)
        assert dict(store.notes("a")) == {}

    def test_an_unknown_job_has_no_notes(self, store: Store) -> None:
        assert dict(store.notes("nobody")) == {}

    def test_a_known_worker_renews_and_an_unknown_one_does_not(self, store: Store) -> None:
        assert store.renew(new_worker(store), 10)
        assert not store.renew(424242, 10)

    def test_a_worker_that_was_given_up_cannot_renew(self, store: Store, clock: ManualClock) -> None:
        worker = new_worker(store, lease=10)
        put(store, "a")
        claim_one(store, worker=worker)
        clock.advance(11)
        upkeep(store)
        assert not store.renew(worker, 10)

    def test_a_worker_that_retired_cannot_renew(self, store: Store) -> None:
        worker = new_worker(store)
        store.retire(worker)
        assert not store.renew(worker, 10)

    def test_one_worker_retires_and_the_others_keep_what_they_hold(self, store: Store) -> None:
        put(store, "a", "b")
        leaving = new_worker(store)
        a = claim_one(store, worker=leaving)
        b = claim_one(store, worker=BOB)
        lapse(store, a)
        assert (state(store, "a"), state(store, "b")) == (State.WAITING, State.RUNNING)
        finish(store, b)

    def test_a_token_never_goes_back_over_revivals(self, store: Store) -> None:
        put(store, "a")
        tokens = []
        for _ in range(4):
            taken = claim_one(store)
            tokens.append(taken.token)
            bury(store, taken)
            assert act(store, Event.REVIVE, "a") == ()
        assert tokens == sorted(set(tokens))
