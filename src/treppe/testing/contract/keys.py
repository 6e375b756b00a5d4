"""Order keys: jobs of one queue with the same key run one after the other, in the order they came due."""

from __future__ import annotations

import pytest

from treppe.job import Event, Repeat, State
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    QUEUE,
    act,
    bury,
    claim,
    claim_ids,
    claim_one,
    claim_until_empty,
    confirm,
    defer,
    doubt,
    finish,
    finished,
    hand_over,
    job,
    lapse,
    new_worker,
    put,
    put_many,
    read,
    state,
    upkeep,
)

BLOCKING = {"unclear": doubt, "handed over": hand_over, "dead": bury}


class Keys(Contract):
    """The line of a key: who stands in it, who blocks it, who lets go."""

    def test_one_at_a_time_in_the_order_they_came(self, store: Store) -> None:
        put(store, "a", "b", "c", key="k")
        for id in ("a", "b", "c"):
            taken = claim_one(store)
            assert (taken.id, claim_ids(store)) == (id, [])
            finish(store, taken)
        assert claim_ids(store) == []

    def test_the_next_one_goes_out_with_the_claim_that_settles_the_head(self, store: Store) -> None:
        ids = put_many(store, 20, key="k")
        taken = claim(store).claims
        went = [one.id for one in taken]
        for _ in ids:
            taken = claim(store, settling=[finished(one) for one in taken]).claims
            went += [one.id for one in taken]
        assert went == ids

    def test_jobs_without_a_key_and_with_other_keys_run_beside(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        put(store, "c", key="K")
        put(store, "d", "e")
        assert claim_ids(store) == ["a", "c", "d", "e"]

    def test_the_same_key_in_another_queue_is_another_key(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        put(store, "c", "d", key="k", queue="other")
        assert sorted(one.id for one in claim_until_empty(store)) == ["a", "c"]

    @pytest.mark.parametrize("key", ["", " ", "%", "ä\U0001f600", "x" * 255, "customer:7"])
    def test_any_text_is_a_key(self, store: Store, key: str) -> None:
        put(store, "a", "b", key=key)
        assert claim_ids(store) == ["a"]
        assert read(store, "b").key == key

    def test_who_is_due_first_goes_first(self, store: Store, clock: ManualClock) -> None:
        put(store, "late", key="k", delay=20)
        put(store, "early", key="k", delay=10)
        put(store, "early too", key="k", delay=10)
        clock.advance(30)
        assert one_by_one(store) == ["early", "early too", "late"]

    def test_the_order_holds_across_priorities(self, store: Store) -> None:
        put(store, "low", key="k", priority=-1)
        put(store, "high", key="k", priority=100)
        put(store, "middle", key="k")
        assert one_by_one(store) == ["low", "high", "middle"]

    def test_a_retry_keeps_its_place(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", "b", key="k")
        defer(store, claim_one(store), delay=60)
        assert claim_ids(store) == []
        clock.advance(59)
        assert claim_ids(store) == []
        clock.advance(1)
        assert one_by_one(store) == ["a", "b"]

    def test_a_retry_keeps_its_place_also_before_a_higher_priority(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", key="k", priority=-1)
        put(store, "b", key="k", priority=100)
        defer(store, claim_one(store), delay=60)
        assert claim_ids(store) == []
        clock.advance(60)
        assert one_by_one(store) == ["a", "b"]

    def test_a_job_of_the_future_blocks_nobody_until_it_is_due(self, store: Store, clock: ManualClock) -> None:
        put(store, "tomorrow", key="k", delay=86400)
        put(store, "today", "today too", key="k")
        assert one_by_one(store) == ["today", "today too"]
        clock.advance(86400)
        assert claim_ids(store) == ["tomorrow"]

    def test_a_job_that_comes_due_joins_the_line(self, store: Store, clock: ManualClock) -> None:
        put(store, "joins", key="k", delay=10)
        put(store, "runs", key="k")
        runs = claim_one(store)
        put(store, "came later", key="k", delay=20)
        clock.advance(30)
        assert claim_ids(store) == []
        finish(store, runs)
        assert one_by_one(store) == ["joins", "came later"]

    def test_a_job_that_comes_due_does_not_pass_a_retry(self, store: Store, clock: ManualClock) -> None:
        put(store, "joins", key="k", delay=10)
        put(store, "retries", key="k")
        defer(store, claim_one(store), delay=60)
        clock.advance(30)
        assert claim_ids(store) == []
        clock.advance(30)
        assert one_by_one(store) == ["retries", "joins"]

    @pytest.mark.parametrize("blocking", BLOCKING)
    def test_a_head_that_is_not_over_blocks_visibly(self, store: Store, clock: ManualClock, blocking: str) -> None:
        put(store, "a", "b", key="k")
        BLOCKING[blocking](store, claim_one(store))
        for _ in range(3):
            clock.advance(60)
            upkeep(store)
            assert claim_ids(store) == []
        assert read(store, "b").behind == "a"
        assert read(store, "a").behind is None

    @pytest.mark.parametrize("blocking", BLOCKING)
    @pytest.mark.parametrize("release", [Event.CANCEL, Event.CONFIRM])
    def test_a_human_lets_the_line_go_on(self, store: Store, blocking: str, release: Event) -> None:
        put(store, "a", "b", "c", key="k")
        BLOCKING[blocking](store, claim_one(store))
        assert act(store, release, "a") == ()
        assert one_by_one(store) == ["b", "c"]

    @pytest.mark.parametrize("blocking", ["unclear", "dead"])
    def test_a_revived_head_goes_first(self, store: Store, blocking: str) -> None:
        put(store, "a", "b", key="k")
        BLOCKING[blocking](store, claim_one(store))
        assert act(store, Event.REVIVE, "a") == ()
        assert one_by_one(store) == ["a", "b"]

    def test_an_unclear_head_that_is_buried_blocks_on_as_a_dead_one(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        doubt(store, claim_one(store))
        act(store, Event.BURY, "a")
        assert claim_ids(store) == []
        act(store, Event.CANCEL, "a")
        assert claim_ids(store) == ["b"]

    def test_a_dead_head_that_may_be_skipped_lets_go(self, store: Store) -> None:
        put(store, "a", "b", key="k", skip_dead=True)
        bury(store, claim_one(store))
        assert read(store, "b").behind is None
        assert claim_ids(store) == ["b"]

    def test_an_unclear_head_that_may_be_skipped_lets_go_when_it_is_buried(self, store: Store) -> None:
        put(store, "a", "b", key="k", skip_dead=True)
        doubt(store, claim_one(store))
        assert claim_ids(store) == []
        act(store, Event.BURY, "a")
        assert claim_ids(store) == ["b"]

    def test_a_skipped_job_that_is_revived_waits_for_who_runs_and_goes_before_later_ones(
        self, store: Store, clock: ManualClock
    ) -> None:
        put(store, "a", "b", "c", key="k", skip_dead=True)
        bury(store, claim_one(store))
        b = claim_one(store)
        clock.advance(60)
        assert act(store, Event.REVIVE, "a") == ()
        assert claim_ids(store) == []
        finish(store, b)
        assert one_by_one(store) == ["a", "c"]

    def test_a_waiting_head_that_is_cancelled_lets_go(self, store: Store) -> None:
        put(store, "a", "b", "c", key="k")
        act(store, Event.CANCEL, "a")
        assert one_by_one(store) == ["b", "c"]

    def test_a_retrying_head_that_is_cancelled_lets_go(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        defer(store, claim_one(store), delay=3600)
        assert claim_ids(store) == []
        act(store, Event.CANCEL, "a")
        assert claim_ids(store) == ["b"]

    def test_one_in_the_middle_that_is_cancelled_is_left_out(self, store: Store) -> None:
        put(store, "a", "b", "c", key="k")
        a = claim_one(store)
        claim_ids(store)
        act(store, Event.CANCEL, "b")
        finish(store, a)
        assert one_by_one(store) == ["c"]

    def test_a_head_whose_cancel_was_asked_for_lets_go_when_it_is_settled(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        a = claim_one(store)
        act(store, Event.ASK_CANCEL, "a")
        assert claim_ids(store) == []
        defer(store, a, delay=3600)
        assert (state(store, "a"), claim_ids(store)) == (State.CANCELLED, ["b"])

    def test_a_running_head_that_is_confirmed_lets_go(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        confirm(store, claim_one(store))
        assert claim_ids(store) == ["b"]

    def test_a_head_that_lapsed_keeps_its_place(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        a = claim_one(store, worker=new_worker(store))
        lapse(store, a)
        assert claim_ids(store) == []
        finish(store, claim_one(store, alone=True))
        assert claim_ids(store) == ["b"]

    def test_a_late_settle_of_the_head_lets_the_line_go_on(self, store: Store) -> None:
        put(store, "a", "b", key="k")
        a = claim_one(store, worker=new_worker(store))
        lapse(store, a)
        assert claim_ids(store) == []
        assert claim_ids(store, settling=[finished(a)]) == ["b"]

    def test_an_expired_head_blocks_as_a_dead_one(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", key="k", expires=10)
        put(store, "b", key="k")
        clock.advance(11)
        upkeep(store)
        assert (state(store, "a"), claim_ids(store)) == (State.DEAD, [])
        act(store, Event.CANCEL, "a")
        assert claim_ids(store) == ["b"]

    def test_an_expired_head_that_may_be_skipped_lets_go(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", key="k", expires=10, skip_dead=True)
        put(store, "b", key="k")
        clock.advance(11)
        upkeep(store)
        assert claim_ids(store) == ["b"]

    def test_a_head_nobody_here_knows_blocks_its_key_alone(self, store: Store) -> None:
        put(store, "unknown", key="k", task="app.unknown")
        put(store, "b", key="k")
        put(store, "c", key="other")
        assert claim_ids(store) == ["c"]
        finish(store, claim_one(store, tasks=("app.unknown",)))
        assert claim_ids(store) == ["b"]

    def test_a_head_nobody_here_knows_lets_go_when_it_is_cancelled(self, store: Store) -> None:
        put(store, "unknown", key="k", task="app.unknown")
        put(store, "b", "c", key="k")
        assert claim_ids(store) == []
        act(store, Event.CANCEL, "unknown")
        assert one_by_one(store) == ["b", "c"]

    def test_a_head_that_must_not_be_prefetched_blocks_its_key(self, store: Store) -> None:
        put(store, "careful", key="k", repeat=Repeat.ASK)
        put(store, "b", key="k")
        assert claim_ids(store, free=0) == []
        assert one_by_one(store) == ["careful", "b"]

    def test_a_head_without_budget_blocks_until_a_human_decides(self, store: Store) -> None:
        put(store, "a", key="k", attempts=1)
        put(store, "b", key="k")
        defer(store, claim_one(store), charged=True)
        assert claim_ids(store) == []
        act(store, Event.CANCEL, "a")
        assert claim_ids(store) == ["b"]

    def test_a_thousand_jobs_behind_one_key_starve_nobody(self, store: Store) -> None:
        put_many(store, 1000, "behind", key="k")
        claim_one(store)
        put(store, "other")
        assert "other" in [id for _ in range(3) for id in claim_ids(store, 1)]

    def test_many_keys_with_busy_heads_starve_nobody(self, store: Store) -> None:
        store.put([job(f"{place}-{key}", key=str(key)) for key in range(250) for place in ("head", "behind")])
        assert len(claim_until_empty(store, 500)) == 250
        put(store, "other")
        assert "other" in [id for _ in range(3) for id in claim_ids(store, 1)]

    def test_a_queue_name_does_not_run_into_a_key(self, store: Store) -> None:
        put(store, "a", queue="q", key="x:y")
        put(store, "b", queue="q:x", key="y")
        assert sorted(one.id for one in claim_until_empty(store)) == ["a", "b"]

    def test_the_line_is_told_behind_the_job_that_holds_it(self, store: Store) -> None:
        put(store, "a", "b", "c", key="k")
        a = claim_one(store)
        claim_ids(store)
        assert (read(store, "b").behind, read(store, "c").behind) == ("a", "a")
        finish(store, a)
        assert claim_ids(store) == ["b"]
        assert read(store, "c").behind == "b"
        assert next(one for one in store.backlog().queues if one.queue == QUEUE).behind == 1


def one_by_one(store: Store) -> list[str]:
    """Claim, see that nothing else goes beside, finish; until nothing is left."""
    ids: list[str] = []
    for _ in range(1000):
        taken = claim(store).claims
        if not taken:
            return ids
        ids += [one.id for one in taken]
        assert len(taken) == 1, f"{[one.id for one in taken]} would run beside each other"
        assert claim_ids(store) == []
        finish(store, *taken)
    raise AssertionError("the line does not end")
