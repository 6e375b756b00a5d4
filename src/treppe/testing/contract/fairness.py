"""Fairness: priority is an order, never a wall; and no queue eats up the turn of another."""

from __future__ import annotations

import pytest

from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import claim_ids, claim_one, claim_until_empty, put, put_many

HIGH, ABOVE, NORMAL, LOW = 100, 1, 0, -1


class Fairness(Contract):
    """Bands inside a queue, round robin between queues."""

    @pytest.mark.parametrize("n", [1, 4])
    def test_the_higher_band_goes_first(self, store: Store, n: int) -> None:
        for id, priority in (("low", LOW), ("normal", NORMAL), ("above", ABOVE), ("high", HIGH)):
            put(store, id, priority=priority)
        assert [one.id for one in claim_until_empty(store, n)] == ["high", "above", "normal", "low"]

    def test_inside_one_band_age_decides_not_the_number(self, store: Store) -> None:
        for id, priority in (("first", 50), ("second", 100), ("third", 70)):
            put(store, id, priority=priority)
        assert claim_ids(store) == ["first", "second", "third"]

    def test_most_claims_go_by_band(self, store: Store) -> None:
        put_many(store, 50, "low", priority=LOW)
        put_many(store, 50, "high", priority=HIGH)
        first = [claim_one(store).id.split("-")[0] for _ in range(40)]
        assert first.count("high") >= 40 * 0.9

    @pytest.mark.parametrize("n", [1, 10, 100])
    def test_every_tenth_claim_goes_by_age_alone(self, store: Store, clock: ManualClock, n: int) -> None:
        put(store, "old", priority=LOW)
        clock.advance(1)
        put_many(store, 300, "high", priority=HIGH)
        ids: list[str] = []
        for _ in range(max(1, 20 // n)):
            ids += claim_ids(store, n)
        assert "old" in ids

    @pytest.mark.parametrize("n", [1, 10, 100])
    def test_a_stream_of_higher_jobs_that_never_ends_starves_nobody(
        self, store: Store, clock: ManualClock, n: int
    ) -> None:
        put_many(store, 5, "old", priority=LOW)
        ids: list[str] = []
        for turn in range(max(2, 120 // n)):
            clock.advance(1)
            put_many(store, n + 10, f"high-{turn}", priority=HIGH)
            ids += claim_ids(store, n)
        assert {f"old-{i}" for i in range(5)} <= set(ids)

    def test_priority_counts_inside_one_queue_only(self, store: Store) -> None:
        put_many(store, 100, "loud", queue="loud", priority=HIGH)
        put_many(store, 3, "quiet", queue="quiet", priority=LOW)
        served = [claim_one(store).queue for _ in range(12)]
        assert served.count("quiet") == 3

    def test_a_queue_with_a_thousand_jobs_does_not_starve_one_with_one(self, store: Store) -> None:
        put_many(store, 1000, "many", queue="many")
        put(store, "one", queue="one")
        assert "one" in [claim_one(store).id for _ in range(4)]

    @pytest.mark.parametrize("n", [1, 10])
    def test_many_queues_take_turns(self, store: Store, n: int) -> None:
        for queue in range(20):
            put_many(store, 50, f"queue-{queue}", queue=f"queue-{queue}")
        served: set[str] = set()
        for _ in range(40):
            served |= {id.rsplit("-", 1)[0] for id in claim_ids(store, n)}
        assert len(served) == 20

    def test_queues_made_at_run_time_get_their_turn(self, store: Store) -> None:
        put_many(store, 500, "old", queue="a")
        claim_ids(store, 10)
        put(store, "new", queue="shop:acme/2024.v1_x-y")
        assert "new" in [claim_one(store).id for _ in range(4)]

    def test_a_batch_is_filled_from_all_queues(self, store: Store) -> None:
        for queue in range(30):
            put(store, f"only-{queue}", queue=f"queue-{queue}")
        assert len({one.id for one in claim_until_empty(store, 100, most=3)}) == 30

    def test_every_job_of_many_queues_is_served_in_the_end(self, store: Store) -> None:
        for queue in range(10):
            put_many(store, 1 + queue * 3, f"queue-{queue}", queue=f"queue-{queue}")
        taken = claim_until_empty(store, 7)
        assert len({one.id for one in taken}) == len(taken) == sum(1 + queue * 3 for queue in range(10))
