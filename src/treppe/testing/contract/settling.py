"""Settle: what a handler ended with is written once, whole, and whatever its error message looks like."""

from __future__ import annotations

import pytest

from treppe.job import Event, Kind, State
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    ALICE,
    SETTLEMENTS,
    act,
    bury,
    claim,
    claim_ids,
    claim_one,
    confirmed,
    defer,
    doubt,
    finish,
    finished,
    hand_over,
    put,
    put_many,
    read,
    state,
    unchanged,
    upkeep,
)

WEDGING = ["a\0b", "\ud800", "\udfff tail", "\x00", "ä\U0001f600", "x" * 2_000_000, "'; DROP TABLE job; --", "\x1b[31m"]
"""Error texts that wedged somebody's jobs for ever: kestra#10326, akash console#3898, hatchet#4619."""


class Settling(Contract):
    """One test per way to end."""

    @pytest.mark.parametrize("result", [b"", b"\0\xff", b'{"id": 1}', b"x" * 1_000_000])
    def test_a_finished_job_is_done_and_its_result_is_readable(
        self, store: Store, clock: ManualClock, result: bytes
    ) -> None:
        put(store, "a")
        taken = claim_one(store)
        clock.advance(3)
        finish(store, taken, result=result)
        job = read(store, "a")
        assert (job.state, job.result, job.ended_at, job.error) == (State.DONE, result, clock(), "")
        assert claim_ids(store) == []

    def test_a_finished_job_without_a_result_has_none(self, store: Store) -> None:
        put(store, "a")
        finish(store, claim_one(store))
        assert read(store, "a").result is None

    @pytest.mark.parametrize("size", [1, 2, 100, 500])
    def test_a_batch_is_settled_each_in_its_way(self, store: Store, size: int) -> None:
        put_many(store, size)
        ends = list(SETTLEMENTS.values())
        assert store.settle([ends[i % 5](one) for i, one in enumerate(claim(store, size).claims)]) == ()
        targets = [State.DONE, State.WAITING, State.DEAD, State.UNCLEAR, State.HANDED_OVER]
        assert [state(store, f"job-{i}") for i in range(size)] == [targets[i % 5] for i in range(size)]

    @pytest.mark.parametrize("delay", [0.0, 0.5, 60.0, 7200.0])
    def test_a_deferred_job_waits_as_long_as_it_was_told(self, store: Store, clock: ManualClock, delay: float) -> None:
        put(store, "a")
        taken = claim_one(store)
        clock.advance(7)
        defer(store, taken, delay=delay)
        job = read(store, "a")
        assert job.state is State.WAITING
        assert job.run_at == pytest.approx(clock() + delay, abs=0.01)
        assert job.due_at == clock() - 7
        if delay:
            clock.advance(delay - 0.25)
            assert claim_ids(store) == []
            clock.advance(0.25)
        assert claim_ids(store) == ["a"]

    def test_only_a_charged_failure_uses_up_an_attempt(self, store: Store) -> None:
        put(store, "a", attempts=5)
        for charged in (False, True, False, True):
            defer(store, claim_one(store), charged=charged)
        taken = claim_one(store)
        assert (taken.charged, taken.claims) == (2, 5)
        assert (read(store, "a").charged, read(store, "a").claims) == (2, 5)

    def test_the_budget_of_crashes_is_not_touched_by_failures(self, store: Store) -> None:
        put(store, "a")
        defer(store, claim_one(store), charged=True)
        assert claim_one(store).crashes == 0

    def test_a_buried_job_is_dead_with_its_reason(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", "b")
        a, _ = claim(store).claims
        clock.advance(1)
        bury(store, a, error="422: no such customer", charged=True)
        job = read(store, "a")
        assert (job.state, job.error, job.ended_at) == (State.DEAD, "422: no such customer", clock())
        assert (job.charged, job.token, job.claims) == (1, a.token, 1)

    def test_a_doubted_job_is_unclear(self, store: Store) -> None:
        put(store, "a")
        doubt(store, claim_one(store), error="no answer")
        job = read(store, "a")
        assert (job.state, job.error, job.ended_at) == (State.UNCLEAR, "no answer", None)
        assert claim_ids(store) == []

    def test_a_job_handed_over_waits_for_the_other_side(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        hand_over(store, claim_one(store), confirm_within=100)
        clock.advance(99)
        upkeep(store)
        assert (state(store, "a"), claim_ids(store)) == (State.HANDED_OVER, [])
        clock.advance(2)
        upkeep(store)
        assert (state(store, "a"), claim_ids(store)) == (State.UNCLEAR, [])

    def test_the_other_side_confirms_by_token_and_worker(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store)
        hand_over(store, taken)
        assert store.settle([confirmed(taken, result=b"ok")]) == ()
        assert (state(store, "a"), read(store, "a").result) == (State.DONE, b"ok")

    def test_a_confirm_of_an_earlier_try_is_refused(self, store: Store) -> None:
        put(store, "a")
        first = claim_one(store)
        defer(store, first)
        hand_over(store, claim_one(store))
        assert store.settle([confirmed(first)]) != ()
        assert state(store, "a") is State.HANDED_OVER

    def test_a_confirm_that_comes_after_its_time_still_counts(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        taken = claim_one(store)
        hand_over(store, taken, confirm_within=100)
        clock.advance(101)
        upkeep(store)
        assert state(store, "a") is State.UNCLEAR
        assert store.settle([confirmed(taken)]) == ()
        assert state(store, "a") is State.DONE

    @pytest.mark.parametrize("human", [Event.CANCEL, Event.CONFIRM])
    def test_a_confirm_after_a_human_decided_is_refused(self, store: Store, human: Event) -> None:
        put(store, "a")
        taken = claim_one(store)
        hand_over(store, taken)
        assert act(store, human, "a") == ()
        with unchanged(store, "a"):
            assert store.settle([confirmed(taken)]) != ()

    def test_the_other_side_may_be_faster_than_our_settle(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store)
        assert store.settle([confirmed(taken)]) == ()
        assert state(store, "a") is State.DONE
        assert store.settle([SETTLEMENTS[Event.HAND_OVER](taken)]) != ()

    @pytest.mark.parametrize("end", [Event.DEFER, Event.BURY])
    def test_the_other_side_reports_a_failure(self, store: Store, end: Event) -> None:
        put(store, "a")
        taken = claim_one(store)
        hand_over(store, taken)
        assert store.settle([SETTLEMENTS[end](taken, error="failed there", charged=True)]) == ()
        assert state(store, "a") is (State.WAITING if end is Event.DEFER else State.DEAD)
        assert read(store, "a").charged == 1

    def test_a_cancel_that_was_asked_for_turns_a_defer_into_a_cancel(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        taken = claim_one(store)
        assert act(store, Event.ASK_CANCEL, "a") == ()
        assert (state(store, "a"), read(store, "a").cancelling) == (State.RUNNING, True)
        defer(store, taken, delay=60)
        clock.advance(60)
        job = read(store, "a")
        assert (job.state, job.cancelling, claim_ids(store)) == (State.CANCELLED, False, [])

    @pytest.mark.parametrize(
        ("end", "target"),
        [
            (Event.FINISH, State.DONE),
            (Event.BURY, State.DEAD),
            (Event.DOUBT, State.UNCLEAR),
            (Event.HAND_OVER, State.HANDED_OVER),
        ],
    )
    def test_other_ends_keep_their_own_although_a_cancel_was_asked_for(
        self, store: Store, end: Event, target: State
    ) -> None:
        put(store, "a")
        taken = claim_one(store)
        act(store, Event.ASK_CANCEL, "a")
        assert store.settle([SETTLEMENTS[end](taken)]) == ()
        assert state(store, "a") is target

    @pytest.mark.parametrize("end", [Event.DEFER, Event.BURY, Event.DOUBT])
    @pytest.mark.parametrize("error", WEDGING, ids=lambda text: ascii(text[:20]))
    def test_no_error_text_wedges_a_job(self, store: Store, end: Event, error: str) -> None:
        put(store, "a", "b")
        a, b = claim(store).claims
        assert store.settle([SETTLEMENTS[end](a, error=error), finished(b)]) == ()
        kept = read(store, "a").history[-1].error
        assert "\0" not in kept
        assert 0 < len(kept.encode()) < 200_000
        assert state(store, "a") is not State.RUNNING
        assert state(store, "b") is State.DONE

    def test_an_error_text_in_a_claims_settlement_wedges_nobody(self, store: Store) -> None:
        put(store, "a", "b")
        a = claim_one(store)
        brought = claim(store, settling=[SETTLEMENTS[Event.BURY](a, error="\0\ud800")])
        assert (brought.refused, [one.id for one in brought.claims]) == ((), ["b"])

    @pytest.mark.parametrize("place", [0, 4, 9])
    @pytest.mark.parametrize("end", [Event.FINISH, Event.DEFER])
    def test_one_settlement_that_cannot_be_written_does_not_hold_up_the_others(
        self, store: Store, place: int, end: Event
    ) -> None:
        put_many(store, 10)
        batch = [SETTLEMENTS[end](one) for one in claim(store, 10).claims]
        batch[place].detail = object()  # type: ignore[assignment]
        assert store.settle(batch) == (batch[place],)
        others = {state(store, f"job-{i}") for i in range(10) if i != place}
        assert others == {State.DONE if end is Event.FINISH else State.WAITING}
        assert state(store, f"job-{place}") is State.WAITING, "an end that cannot be written leaves nobody running"

    def test_the_history_tells_every_attempt_in_order(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        for n in range(3):
            taken = claim_one(store)
            clock.advance(5)
            defer(store, taken, error=f"failure {n}", charged=n > 0, kind=Kind.FAILED, detail=b'{"status": 500}')
        last = claim_one(store)
        clock.advance(1)
        finish(store, last, result=b"done")
        history = read(store, "a").history
        assert [line.event for line in history] == [Event.DEFER] * 3 + [Event.FINISH]
        assert [line.error for line in history] == ["failure 0", "failure 1", "failure 2", ""]
        assert [line.charged for line in history] == [False, True, True, False]
        assert [line.detail for line in history] == [b'{"status": 500}'] * 3 + [None]
        assert [line.token for line in history] == sorted({line.token for line in history})
        assert all(line.worker == ALICE for line in history)
        first, end = history[0], history[-1]
        assert (first.kind, first.due_at) == (Kind.FAILED, read(store, "a").due_at)
        assert (first.started_at, first.finished_at) == (clock() - 16, clock() - 11)
        assert (end.kind, end.result, end.finished_at) == (Kind.OK, b"done", clock())
