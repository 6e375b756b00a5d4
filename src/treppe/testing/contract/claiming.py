"""Claim: what is due goes out once, whole, to somebody who knows the task; nothing else goes out."""

from __future__ import annotations

import pytest

from treppe.job import Event, Kind, Repeat, State
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract, until
from treppe.testing.contract.verbs import (
    ALICE,
    BOB,
    QUEUE,
    TASK,
    act,
    claim,
    claim_ids,
    claim_one,
    claim_until_empty,
    defer,
    finish,
    finished,
    job,
    new_worker,
    put,
    put_many,
    read,
    state,
    upkeep,
)


class Claiming(Contract):
    """Due times, tasks, queues, prefetch, counters."""

    def test_an_empty_store_brings_nothing_and_knows_of_nothing(self, store: Store) -> None:
        brought = claim(store)
        assert (brought.claims, brought.refused, brought.next_in, brought.suspects) == ((), (), None, False)

    def test_a_claim_carries_all_a_handler_needs(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", payload=b"\0x", content_type="text/x", key="k", deadline=20, expires=30, attempts=7)
        clock.advance(5)
        taken, there = claim_one(store), read(store, "a")
        assert (taken.seq, taken.id, taken.task, taken.queue, taken.key) == (there.seq, "a", TASK, QUEUE, "k")
        assert (taken.payload, taken.content_type, taken.repeat) == (b"\0x", "text/x", Repeat.SAFE)
        assert (taken.claims, taken.charged, taken.attempts, taken.crashes) == (1, 0, 7, 0)
        assert (taken.due_at, taken.claimed_at) == (clock() - 5, clock())
        assert (taken.deadline_at, taken.expires_at) == (clock() + 15, clock() + 25)
        assert (taken.suspect, taken.probe, taken.looking, taken.slotted) == (False, False, False, False)
        assert not taken.notes
        assert taken.seen is None

    def test_a_claimed_job_runs_under_the_token_and_worker_of_its_claim(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store, worker=BOB)
        assert taken.worker == BOB
        assert taken.token == read(store, "a").token > 0
        assert (state(store, "a"), read(store, "a").claims) == (State.RUNNING, 1)

    def test_a_job_that_runs_is_not_claimed_again(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        claim_one(store, worker=ALICE)
        clock.advance(86400)
        upkeep(store)
        assert claim_ids(store, worker=BOB) == claim_ids(store, worker=ALICE) == []

    @pytest.mark.parametrize("n", [1, 2, 100])
    def test_a_claim_brings_as_many_as_asked_and_never_more(self, store: Store, n: int) -> None:
        put_many(store, 150)
        assert len(claim(store, n).claims) == n
        assert len(claim_until_empty(store, n)) == 150 - n

    def test_a_claim_of_none_brings_none_and_still_settles(self, store: Store) -> None:
        put(store, "a", "b")
        taken = claim_one(store)
        assert claim(store, 0, settling=[finished(taken)]).claims == ()
        assert state(store, "a") is State.DONE

    def test_jobs_that_are_due_go_in_the_order_they_came(self, store: Store) -> None:
        ids = put_many(store, 50)
        assert claim_ids(store, 20) + claim_ids(store, 1) + claim_ids(store, 100) == ids

    def test_jobs_go_in_the_order_they_are_due(self, store: Store, clock: ManualClock) -> None:
        for id, delay in (("third", 30), ("first", 10), ("second", 20), ("now", 0)):
            put(store, id, delay=delay)
        clock.advance(60)
        assert claim_ids(store) == ["now", "first", "second", "third"]

    def test_no_job_goes_before_it_is_due(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", delay=60)
        clock.advance(59)
        assert claim_ids(store) == []
        clock.advance(1)
        assert claim_ids(store) == ["a"]

    def test_a_thousand_jobs_of_the_future_do_not_hide_one_that_is_due(self, store: Store) -> None:
        put_many(store, 1000, delay=3600)
        put(store, "due")
        assert claim_ids(store, 1) == ["due"]

    def test_the_time_to_the_next_job_is_told(self, store: Store, clock: ManualClock) -> None:
        put(store, "late", delay=120)
        put(store, "soon", delay=60, queue="other")
        assert claim(store).next_in == pytest.approx(60, abs=0.01)
        clock.advance(45)
        assert claim(store).next_in == pytest.approx(15, abs=0.01)

    def test_the_time_to_a_retry_is_told(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        defer(store, claim_one(store), delay=30)
        clock.advance(10)
        assert claim(store).next_in == pytest.approx(20, abs=0.01)

    def test_a_claim_that_settles_a_retry_knows_its_time(self, store: Store) -> None:
        put(store, "a")
        taken = claim_one(store)
        retry = finished(taken)
        retry.event, retry.kind, retry.delay = Event.DEFER, Kind.FAILED, 30
        assert claim(store, settling=[retry]).next_in == pytest.approx(30, abs=0.01)

    def test_a_task_nobody_here_knows_is_never_claimed(self, store: Store) -> None:
        put(store, "a", task="app.unknown")
        put(store, "b")
        assert claim_ids(store) == ["b"]
        assert claim_ids(store, tasks=()) == []
        assert claim_ids(store, tasks=("app.unknown",)) == ["a"]
        assert read(store, "a").claims == 1

    def test_a_thousand_unknown_jobs_in_front_starve_nobody(self, store: Store) -> None:
        put_many(store, 1000, task="app.unknown")
        put(store, "known")
        assert claim_ids(store, 1) == ["known"]

    def test_what_comes_before_a_long_line_of_unknown_jobs_is_found_soon(
        self, store: Store, clock: ManualClock
    ) -> None:
        for batch in range(20):
            store.put([job(f"{batch}-{i}", task="app.unknown") for i in range(500)])
        put(store, "known")
        assert claim_ids(store) == ["known"]
        put(store, "earlier", at=clock() - 3600)
        brought = claim(store)
        if not brought.claims:
            assert brought.next_in is not None, "a worker would sleep although a job is due"
            until(lambda: claim_ids(store) == ["earlier"])

    def test_a_worker_is_told_what_it_holds(self, store: Store) -> None:
        put(store, "a", key="k", payload=b"x")
        put_many(store, 3, "other")
        mine, theirs = new_worker(store), new_worker(store)
        (taken,) = claim(store, 1, worker=mine).claims
        claim(store, 5, worker=theirs)
        (told,) = store.held(mine)
        for name in ("seq", "id", "token", "worker", "task", "queue", "key", "payload", "charged", "attempts"):
            assert getattr(told, name) == getattr(taken, name), name
        finish(store, told)
        assert store.held(mine) == ()
        assert len(store.held(theirs)) == 3
        assert store.held(4711) == ()

    def test_only_the_wanted_queues_are_looked_into(self, store: Store) -> None:
        for queue in ("x", "y", "z"):
            put(store, queue, queue=queue)
        assert claim_ids(store, queues=("x",)) == ["x"]
        assert claim_ids(store, queues=()) == []
        assert claim_ids(store, queues=("x", "no such queue")) == []
        assert sorted(claim_ids(store, queues=None)) == ["y", "z"]

    def test_the_next_job_of_an_unwanted_queue_is_not_told(self, store: Store) -> None:
        put(store, "x", queue="x", delay=60)
        assert claim(store, queues=("y",)).next_in is None

    @pytest.mark.parametrize("repeat", [Repeat.ASK, Repeat.LOOK])
    def test_jobs_that_must_not_be_repeated_are_never_prefetched(self, store: Store, repeat: Repeat) -> None:
        put_many(store, 5, "once", repeat=repeat)
        put_many(store, 5, "safe")
        taken = claim(store, 10, free=2).claims
        assert [one.repeat for one in taken].count(repeat) == 2
        assert [one.repeat for one in taken].count(Repeat.SAFE) == 5

    def test_without_a_free_hand_only_repeatable_jobs_go_out(self, store: Store) -> None:
        put_many(store, 100, "once", repeat=Repeat.ASK)
        put(store, "safe")
        assert claim_ids(store, 1, free=0) == ["safe"]
        assert claim_ids(store, 10, free=0) == []

    def test_a_free_hand_may_take_what_must_not_be_repeated(self, store: Store) -> None:
        put_many(store, 5, repeat=Repeat.ASK)
        assert len(claim_until_empty(store, 10, free=1)) == 5

    def test_the_token_grows_with_every_claim_and_claims_are_counted(self, store: Store) -> None:
        put(store, "a")
        tokens = []
        for n in range(1, 6):
            taken = claim_one(store)
            tokens.append(taken.token)
            assert taken.claims == n
            defer(store, taken)
        assert tokens == sorted(set(tokens))

    def test_notes_are_there_again_at_the_next_claim(self, store: Store) -> None:
        put(store, "a")
        first = claim_one(store)
        assert store.note(first, "step:invoice", b"\0done")
        defer(store, first)
        assert claim_one(store).notes == {"step:invoice": b"\0done"}

    def test_notes_of_one_job_are_not_shown_to_another(self, store: Store) -> None:
        put(store, "a", "b")
        a, _ = claim(store).claims
        store.note(a, "mine", b"1")
        defer(store, a)
        put(store, "c")
        assert {one.id: bool(one.notes) for one in claim(store).claims} == {"a": True, "c": False}

    def test_a_job_without_budget_is_never_claimed(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", attempts=2, expires=1000)
        put_many(store, 3, "other")
        for _ in range(2):
            defer(store, claim_one(store), charged=True)
        ids = [one.id for one in claim_until_empty(store, 1)]
        assert "a" not in ids
        clock.advance(2000)
        upkeep(store)
        assert state(store, "a") is State.DEAD

    def test_a_thousand_jobs_without_budget_starve_nobody(self, store: Store) -> None:
        put_many(store, 1000, attempts=1)
        for _ in range(10):
            defer(store, *claim(store, 100).claims, charged=True)
        put(store, "good")
        assert claim_ids(store, 1) == ["good"]

    def test_a_job_that_has_expired_is_never_claimed(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", expires=60)
        put(store, "b", expires=600)
        clock.advance(61)
        assert claim_ids(store) == ["b"]
        assert state(store, "a") in (State.WAITING, State.DEAD)

    def test_a_cancelled_job_is_never_claimed(self, store: Store) -> None:
        put(store, "a", "b")
        act(store, Event.CANCEL, "a")
        assert claim_ids(store) == ["b"]

    @pytest.mark.parametrize("enlisted", [True, False], ids=["given up", "never known"])
    def test_what_a_worker_without_a_lease_takes_does_not_stay_with_it(
        self, store: Store, clock: ManualClock, enlisted: bool
    ) -> None:
        stranger = new_worker(store, lease=10) if enlisted else 77
        clock.advance(11)
        upkeep(store)
        put(store, "a")
        claim(store, worker=stranger)
        upkeep(store)
        finish(store, claim_one(store, worker=BOB, alone=state_is_suspect(store, "a")))
        assert state(store, "a") is State.DONE


def state_is_suspect(store: Store, id: str) -> bool:
    """A job that its worker lost runs alone the next time."""
    return read(store, id).suspect
