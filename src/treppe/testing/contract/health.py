"""Health: a job that failed learns how others of its task fared since, so that an outage charges nobody."""

from __future__ import annotations

import random

import pytest

from treppe.job import Claim, Kind
from treppe.policy.charge import next_seen
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import bury, claim, claim_one, defer, finish, finished, put, put_many, unchanged


class Health(Contract):
    """Two counters per task, two numbers per job."""

    def test_the_first_claim_has_seen_nothing(self, store: Store) -> None:
        put(store, "a", "b")
        finish(store, claim_one(store))
        assert claim_one(store).seen is None

    def test_a_failed_job_learns_how_many_others_were_tried_and_succeeded_since(self, store: Store) -> None:
        fail_first(store)
        succeed(store, 3)
        bury(store, *others(store, 2))
        assert since(again(store)) == (3, 5)

    def test_its_own_failure_is_not_counted_among_the_others(self, store: Store) -> None:
        fail_first(store)
        assert since(again(store)) == (0, 0)

    def test_after_a_charge_it_counts_anew(self, store: Store) -> None:
        fail_first(store)
        succeed(store, 5)
        defer(store, again(store), charged=True)
        succeed(store, 2)
        assert since(again(store)) == (2, 2)

    def test_it_counts_from_the_last_failure_not_from_the_first(self, store: Store) -> None:
        fail_first(store)
        succeed(store, 5)
        defer(store, again(store))
        succeed(store, 2)
        assert since(again(store)) == (2, 2)

    @pytest.mark.parametrize("seed", range(5))
    def test_a_job_remembers_what_the_policy_says(self, store: Store, clock: ManualClock, seed: int) -> None:
        roll, ok, tried, seen = random.Random(seed), 0, 0, None
        put(store, FIRST, queue="watched", attempts=1000)
        for _ in range(40):
            clock.advance(roll.choice([1, 60, 3600]))
            for other in others(store, roll.randint(0, 4)):
                end = roll.choice([finish, finish, finish, bury])
                end(store, other)
                ok, tried = ok + (end is finish), tried + 1
            taken, charged = again(store), roll.random() < 0.2
            assert (taken.seen, taken.health) == (seen, seen and (ok, tried))
            defer(store, taken, charged=charged)
            tried += 1
            seen = next_seen(seen, (ok, tried), charged, clock())

    def test_the_time_of_the_last_failure_is_told(self, store: Store, clock: ManualClock) -> None:
        fail_first(store)
        failed_at = clock()
        clock.advance(600)
        taken = again(store)
        assert taken.seen is not None
        assert taken.seen[2] == pytest.approx(failed_at, abs=0.01)

    def test_what_happened_before_the_failure_does_not_count(self, store: Store) -> None:
        succeed(store, 5)
        fail_first(store)
        assert since(again(store)) == (0, 0)

    def test_outcomes_that_do_not_count_move_no_counter(self, store: Store) -> None:
        fail_first(store)
        (throttled,) = others(store, 1)
        defer(store, throttled, kind=Kind.THROTTLED, counts=False, delay=3600)
        assert since(again(store)) == (0, 0)

    def test_other_tasks_prove_nothing(self, store: Store) -> None:
        fail_first(store)
        put_many(store, 3, "contact", task="destination:contacts")
        finish(store, *claim(store, tasks=("destination:contacts",)).claims)
        assert since(again(store)) == (0, 0)

    def test_the_same_task_in_another_queue_proves_as_much(self, store: Store) -> None:
        fail_first(store)
        put_many(store, 3, "elsewhere", queue="elsewhere")
        finish(store, *claim(store, queues=("elsewhere",)).claims)
        assert since(again(store)) == (3, 3)

    def test_a_settle_that_is_refused_moves_no_counter(self, store: Store) -> None:
        fail_first(store)
        (other,) = others(store, 1)
        finish(store, other)
        with unchanged(store, other.id):
            assert store.settle([finished(other)]) != ()
        assert since(again(store)) == (1, 1)

    def test_a_batch_of_successes_counts_each(self, store: Store) -> None:
        fail_first(store)
        succeed(store, 100)
        assert since(again(store)) == (100, 100)


FIRST = "first"


def fail_first(store: Store) -> None:
    """The job under watch fails for the first time, and is due again at once."""
    put(store, FIRST, queue="watched")
    defer(store, claim_one(store, queues=("watched",)))


def again(store: Store) -> Claim:
    """The next claim of the job under watch."""
    return claim_one(store, queues=("watched",))


def others(store: Store, n: int) -> tuple[Claim, ...]:
    """Claims of *n* other jobs of the same task."""
    put_many(store, n, f"other-{store.backlog().accepted}")
    taken = claim(store, n, queues=("work",)).claims
    assert len(taken) == n
    return taken


def succeed(store: Store, n: int) -> None:
    """So many others of the same task succeed."""
    finish(store, *others(store, n))


def since(claim: Claim) -> tuple[int, int]:
    """How many others succeeded and were tried since this job's last failure."""
    assert claim.seen is not None
    assert claim.health is not None
    return claim.health[0] - claim.seen[0], claim.health[1] - claim.seen[1]
