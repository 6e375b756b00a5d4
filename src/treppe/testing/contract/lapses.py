"""Lapses: a worker dies and its jobs come back, suspects alone, at most three crashes, and never what must not."""

from __future__ import annotations

import pytest

from treppe.job import Event, Kind, Repeat, State
from treppe.store.protocol import Lapse, Lapsed, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    act,
    by_policy,
    claim,
    claim_ids,
    claim_one,
    claim_until_empty,
    defer,
    doubted,
    finish,
    lapse,
    new_worker,
    put,
    put_many,
    read,
    state,
    unchanged,
    upkeep,
    upkeep_rounds,
)

ONCE = [Repeat.ASK, Repeat.LOOK]


class Lapses(Contract):
    """Leases, suspects, crashes and late settles."""

    def test_a_job_whose_worker_vanished_waits_again_as_a_suspect(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        claim_one(store, worker=new_worker(store, lease=10))
        clock.advance(11)
        assert upkeep(store).lapsed == 1
        job = read(store, "a")
        assert (job.state, job.suspect, job.crashes) == (State.WAITING, True, 0)

    def test_nothing_lapses_before_the_lease_has_run_out(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        claim_one(store, worker=new_worker(store, lease=10))
        clock.advance(9)
        assert upkeep(store).lapsed == 0
        assert state(store, "a") is State.RUNNING

    def test_a_lease_that_is_renewed_lasts(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        worker = new_worker(store, lease=10)
        claim_one(store, worker=worker)
        for _ in range(20):
            clock.advance(9)
            assert store.renew(worker, 10)
            assert upkeep(store).lapsed == 0

    def test_a_late_renewal_counts_as_long_as_nobody_gave_the_worker_up(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        worker = new_worker(store, lease=10)
        taken = claim_one(store, worker=worker)
        clock.advance(500)
        assert upkeep(store, None).lapsed == 0
        assert store.renew(worker, 10)
        assert upkeep(store).lapsed == 0
        finish(store, taken)

    def test_a_clock_that_is_put_back_takes_nothing_from_the_living(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        worker = new_worker(store, lease=10)
        taken = claim_one(store, worker=worker)
        clock.set_to(clock() - 3600)
        assert store.renew(worker, 10)
        assert upkeep(store).lapsed == 0
        clock.advance(5)
        assert upkeep(store).lapsed == 0
        finish(store, taken)

    def test_nothing_lapses_without_a_policy(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        claim_one(store, worker=new_worker(store, lease=10))
        clock.advance(5000)
        with unchanged(store, "a"):
            upkeep(store, None)

    def test_a_worker_that_retired_lapses_at_once(self, store: Store) -> None:
        put(store, "a", "b")
        worker = new_worker(store, lease=10_000)
        claim(store, worker=worker)
        store.retire(worker)
        assert upkeep(store).lapsed == 2

    def test_all_jobs_of_a_lost_worker_lapse_in_bounded_rounds(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 1100)
        worker = new_worker(store, lease=10)
        for _ in range(11):
            claim(store, 100, worker=worker)
        clock.advance(11)
        rounds = upkeep_rounds(store)
        assert sum(one.lapsed for one in rounds) == 1100
        assert max(one.lapsed for one in rounds) <= 500

    def test_long_jobs_of_the_living_hide_no_job_of_the_dead(self, store: Store, clock: ManualClock) -> None:
        """One page full of jobs that are not to be taken back hid all behind it (river#1318)."""
        put_many(store, 700)
        claim_until_empty(store)
        put(store, "last")
        claim_one(store, worker=new_worker(store, lease=10))
        clock.advance(11)
        assert upkeep(store).lapsed == 1
        assert state(store, "last") is State.WAITING

    def test_upkeep_twice_lapses_once(self, store: Store) -> None:
        put(store, "a")
        lapse(store, claim_one(store, worker=new_worker(store)))
        with unchanged(store, "a"):
            assert upkeep(store).lapsed == 0

    def test_the_policy_is_told_the_facts(self, store: Store) -> None:
        put(store, "a", crashes=7, repeat=Repeat.ASK)
        worker = new_worker(store)
        claim_one(store, worker=worker)
        act(store, Event.ASK_CANCEL, "a")
        store.retire(worker)
        told: list[Lapsed] = []

        def listen(lapsed: Lapsed) -> Lapse:
            told.append(lapsed)
            return by_policy(lapsed)

        upkeep(store, listen)
        assert told == [Lapsed(Repeat.ASK, suspect=False, cancelling=True, crashes=0, max_crashes=7)]

    def test_what_the_policy_says_is_kept_in_the_history(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        worker = new_worker(store, lease=10)
        taken = claim_one(store, worker=worker)
        clock.advance(11)
        upkeep(store, lambda _: Lapse(Event.LAPSE, crashed=False, error="gone"))
        (line,) = read(store, "a").history
        assert (line.event, line.kind, line.error, line.charged) == (Event.LAPSE, Kind.LAPSED, "gone", False)
        assert (line.token, line.worker, line.started_at, line.finished_at) == (
            taken.token,
            worker,
            clock() - 11,
            clock(),
        )

    def test_a_suspect_is_claimed_alone_and_only_by_who_asks(self, store: Store) -> None:
        put(store, "a", "b", "c")
        lapse(store, *claim(store, 2, worker=new_worker(store)).claims)
        brought = claim(store, 10)
        assert ([one.id for one in brought.claims], brought.suspects) == (["c"], True)
        (suspect,) = claim(store, 10, alone=True).claims
        assert (suspect.id, suspect.suspect) == ("a", True)

    def test_who_asks_for_a_suspect_gets_nothing_else(self, store: Store) -> None:
        put(store, "a")
        assert claim_ids(store, alone=True) == []
        assert not claim(store, 0).suspects

    def test_a_suspect_of_a_task_nobody_here_knows_is_not_claimed(self, store: Store) -> None:
        put(store, "a", task="app.unknown")
        lapse(store, claim_one(store, worker=new_worker(store), tasks=("app.unknown",)))
        assert claim_ids(store, alone=True) == []
        assert claim_ids(store, alone=True, tasks=("app.unknown",)) == ["a"]

    def test_a_suspect_outside_the_wanted_queues_is_not_claimed(self, store: Store) -> None:
        put(store, "a")
        lapse(store, claim_one(store, worker=new_worker(store)))
        assert claim_ids(store, alone=True, queues=("other",)) == []

    def test_a_suspect_that_ended_well_is_none_any_more(self, store: Store) -> None:
        put(store, "a")
        lapse(store, claim_one(store, worker=new_worker(store)))
        defer(store, claim_one(store, alone=True))
        assert not read(store, "a").suspect
        assert claim_ids(store) == ["a"]

    def test_only_the_lapse_of_a_suspect_is_a_crash_and_the_third_is_the_end(self, store: Store) -> None:
        put(store, "a", crashes=3)
        lapse(store, claim_one(store, worker=new_worker(store)))
        for crash in (0, 1, 2):
            assert (state(store, "a"), read(store, "a").crashes) == (State.WAITING, crash)
            lapse(store, claim_one(store, worker=new_worker(store), alone=True))
        job = read(store, "a")
        assert (job.state, job.crashes) == (State.DEAD, 3)
        assert "crash" in job.error
        assert claim_ids(store, alone=True) == []

    def test_crashes_used_up_are_never_claimed_whatever_the_policy_said(self, store: Store) -> None:
        put(store, "a", crashes=1)
        for _ in range(2):
            worker = new_worker(store)
            claim(store, worker=worker)
            claim(store, worker=worker, alone=True)
            store.retire(worker)
            upkeep(store, lambda lapsed: Lapse(Event.LAPSE, lapsed.suspect))
        assert claim_ids(store) == claim_ids(store, alone=True) == []

    def test_a_batch_does_not_die_with_the_one_that_kills_its_worker(self, store: Store) -> None:
        put_many(store, 20)
        lapse(store, *claim(store, worker=new_worker(store)).claims)
        for _ in range(30):
            suspect = claim(store, 20, worker=new_worker(store), alone=True).claims
            if not suspect:
                break
            if suspect[0].id == "job-7":
                lapse(store, *suspect)
            else:
                finish(store, *suspect)
        ends = [state(store, f"job-{i}") for i in range(20)]
        assert ends == [State.DEAD if i == 7 else State.DONE for i in range(20)]

    @pytest.mark.parametrize("repeat", ONCE)
    def test_what_must_not_be_repeated_becomes_unclear(self, store: Store, repeat: Repeat) -> None:
        put(store, "a", repeat=repeat)
        lapse(store, claim_one(store, worker=new_worker(store)))
        assert state(store, "a") is State.UNCLEAR

    def test_an_unclear_job_that_must_not_be_repeated_is_never_claimed_by_itself(
        self, store: Store, clock: ManualClock
    ) -> None:
        put(store, "a", repeat=Repeat.ASK)
        lapse(store, claim_one(store, worker=new_worker(store)))
        for _ in range(5):
            clock.advance(86400)
            upkeep(store)
            assert claim_ids(store) == claim_ids(store, alone=True) == []

    def test_an_unclear_job_is_claimed_at_most_to_look(self, store: Store) -> None:
        put(store, "a", repeat=Repeat.LOOK)
        store.settle([doubted(claim_one(store))])
        assert all(one.looking for one in claim(store).claims)

    @pytest.mark.parametrize(("repeat", "end"), [(Repeat.SAFE, State.CANCELLED), (Repeat.ASK, State.UNCLEAR)])
    def test_a_lapsed_job_whose_cancel_was_asked_for(self, store: Store, repeat: Repeat, end: State) -> None:
        put(store, "a", repeat=repeat)
        taken = claim_one(store, worker=new_worker(store))
        act(store, Event.ASK_CANCEL, "a")
        lapse(store, taken)
        assert state(store, "a") is end
