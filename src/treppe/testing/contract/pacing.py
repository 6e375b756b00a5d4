"""Pace: a pure function decides; the store asks it, keeps its flow, and folds every report in exactly once."""

from __future__ import annotations

import pytest

from treppe.job import Claim, Grant, Kind, Repeat, Report, State
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract, as_long_as, together
from treppe.testing.contract.paces import Answer, ScriptedPace, counting, held_for
from treppe.testing.contract.verbs import (
    ALICE,
    BOB,
    QUEUE,
    claim,
    claim_ids,
    claim_one,
    claim_until_empty,
    defer,
    deferred,
    finish,
    finished,
    put,
    put_many,
    state,
)

FLOW = f"flow:{QUEUE}"


def paced(answer: Answer | Grant) -> ScriptedPace:
    """A pace for the usual queue: a function of what is asked, or one grant for all."""
    return ScriptedPace({QUEUE: (lambda _: answer) if isinstance(answer, Grant) else answer})


def report(claim: Claim, kind: Kind = Kind.OK, **fields: float) -> Report:
    """What a settle learned."""
    return Report(kind, claim.seq, **fields)  # type: ignore[arg-type]


class Pacing(Contract):
    """Grants, flows, reports, probes."""

    def test_a_queue_without_limits_is_never_asked_for(self, store: Store) -> None:
        put(store, "a")
        put(store, "b", queue="other")
        pace = ScriptedPace({"other": lambda asked: Grant(asked.want)})
        claim_until_empty(store, pace=pace)
        assert {asked.queue for asked in pace.asked} == {"other"}
        assert store.journal.get(FLOW) is None

    def test_no_more_start_than_granted(self, store: Store) -> None:
        put_many(store, 10)
        assert len(claim(store, 10, pace=paced(Grant(3))).claims) == 3

    def test_the_facts_are_told(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 10)
        pace = paced(lambda asked: Grant(asked.want, b"first"))
        claim(store, 4, pace=pace)
        first = pace.asked[0]
        assert (first.queue, first.flow, first.reports, first.now) == (QUEUE, None, (), clock())
        assert 0 < first.want <= 4
        assert 0 <= first.ahead <= 1
        claim(store, 4, pace=pace)
        assert pace.asked[-1].flow == b"first"

    def test_nothing_is_granted_that_is_not_taken(self, store: Store) -> None:
        put_many(store, 3)
        pace = paced(lambda asked: Grant(asked.want, b"%d" % asked.want))
        assert len(claim(store, 10, pace=pace).claims) == 3
        assert pace.granted[-1].n == 3
        assert store.journal.get(FLOW) == b"3"

    def test_an_empty_queue_uses_up_no_grant(self, store: Store) -> None:
        put(store, "later", delay=60)
        pace = paced(lambda asked: Grant(asked.want, b"%d" % (int(asked.flow or b"0") + asked.want)))
        claim(store, 10, pace=pace)
        assert int(store.journal.get(FLOW) or b"0") == 0

    @pytest.mark.parametrize("flow", [b"\0\xff", b"x" * 10_000])
    def test_a_flow_is_kept_as_it_is(self, store: Store, flow: bytes) -> None:
        put_many(store, 2)
        pace = paced(lambda asked: Grant(min(1, asked.want), flow))
        claim_ids(store, 1, pace=pace)
        assert store.journal.get(FLOW) == flow
        claim_ids(store, 1, pace=pace)
        assert pace.asked[-1].flow == flow

    def test_a_flow_changed_by_hand_is_what_the_next_grant_sees(self, store: Store) -> None:
        put_many(store, 2)
        pace = paced(lambda asked: Grant(1, asked.flow or b"open"))
        claim_ids(store, 1, pace=pace)
        assert store.journal.swap(FLOW, b"open", b"paused")
        claim_ids(store, 1, pace=pace)
        assert pace.asked[-1].flow == b"paused"

    def test_each_queue_has_a_flow_of_its_own(self, store: Store) -> None:
        put(store, "a", queue="x")
        put(store, "b", queue="x:y")
        pace = ScriptedPace({queue: lambda asked: Grant(1, asked.queue.encode()) for queue in ("x", "x:y")})
        claim_until_empty(store, pace=pace)
        assert (store.journal.get("flow:x"), store.journal.get("flow:x:y")) == (b"x", b"x:y")

    def test_a_held_queue_brings_nothing_and_says_when_to_ask_again(self, store: Store) -> None:
        put_many(store, 5)
        brought = claim(store, 5, pace=paced(Grant(0, wait=7)))
        assert brought.claims == ()
        assert brought.next_in == pytest.approx(7, abs=0.01)

    def test_the_sooner_of_hold_and_due_time_is_told(self, store: Store) -> None:
        put(store, "held")
        put(store, "soon", queue="other", delay=3)
        assert claim(store, pace=paced(Grant(0, wait=7))).next_in == pytest.approx(3, abs=0.01)

    def test_held_jobs_burn_nothing(self, store: Store) -> None:
        put(store, "a")
        for _ in range(5):
            claim_ids(store, pace=paced(Grant(0, wait=7)))
        taken = claim_one(store)
        assert (taken.claims, taken.charged) == (1, 0)

    @pytest.mark.parametrize("n", [1, 10])
    def test_held_queues_hold_up_nobody_else(self, store: Store, n: int) -> None:
        held = [f"held-{i}" for i in range(20)]
        for queue in held:
            put_many(store, 50, queue, queue=queue)
        put_many(store, 10, "free")
        pace = ScriptedPace({queue: held_for(60) for queue in held})
        assert len({id for _ in range(30) for id in claim_ids(store, n, pace=pace)}) == 10

    def test_start_times_are_passed_on(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 3)
        starts = (clock(), clock() + 0.25, clock() + 0.5)
        taken = claim(store, 3, pace=paced(lambda asked: Grant(asked.want, starts=starts[: asked.want]))).claims
        assert [one.start_at for one in taken] == pytest.approx(list(starts), abs=0.001)

    def test_without_start_times_a_job_may_start_at_once(self, store: Store, clock: ManualClock) -> None:
        put(store, "a")
        assert claim_one(store, pace=paced(Grant(1))).start_at <= clock()

    @pytest.mark.parametrize("careful", [Repeat.ASK, Repeat.LOOK])
    def test_a_probe_is_a_job_that_may_be_repeated(self, store: Store, careful: Repeat) -> None:
        put_many(store, 5, "careful", repeat=careful, priority=100)
        put(store, "safe", priority=-1)
        (probe,) = claim(store, 10, pace=paced(Grant(1, probe=True))).claims
        assert (probe.id, probe.probe) == ("safe", True)

    def test_a_probe_must_not_be_repeated_only_if_there_is_nothing_else(self, store: Store) -> None:
        put_many(store, 5, repeat=Repeat.ASK)
        (probe,) = claim(store, 10, pace=paced(Grant(1, probe=True))).claims
        assert (probe.probe, probe.repeat) == (True, Repeat.ASK)

    def test_no_other_claim_is_a_probe(self, store: Store) -> None:
        put(store, "a")
        assert not claim_one(store, pace=paced(Grant(1))).probe

    def test_the_next_grant_folds_in_what_settles_learned(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 3)
        pace = paced(lambda asked: Grant(asked.want, b"flow"))
        a, b = claim(store, 2, pace=pace).claims
        clock.advance(5)
        told = [report(a), report(b, Kind.THROTTLED, after=30.0)]
        store.settle([finished(a, report=told[0]), deferred(b, kind=Kind.THROTTLED, delay=60, report=told[1])])
        claim(store, 1, pace=pace)
        ok, throttled = pace.asked[-1].reports
        assert (ok.kind, ok.n, ok.at) == (Kind.OK, 1, clock())
        assert (throttled.kind, throttled.job, throttled.after, throttled.at) == (Kind.THROTTLED, b.seq, 30.0, clock())

    def test_a_claim_hears_the_reports_of_its_own_settles(self, store: Store) -> None:
        put_many(store, 2)
        pace = paced(counting)
        taken = claim_one(store, pace=pace)
        claim(store, 1, pace=pace, settling=[finished(taken, report=report(taken))])
        assert store.journal.get(FLOW) == b"1"

    def test_every_report_is_folded_in_exactly_once(self, store: Store) -> None:
        put_many(store, 120)
        pace, settled = paced(counting), 0
        for _ in range(40):
            taken = claim(store, 7, pace=pace).claims
            store.settle([finished(one, report=report(one)) for one in taken])
            settled += len(taken)
        put(store, "last")
        claim(store, 1, pace=pace)
        assert settled == 120
        assert store.journal.get(FLOW) == b"120"
        assert store.journal.page(f"report:{QUEUE}") == []

    def test_reports_are_folded_in_once_also_while_nothing_is_granted(self, store: Store) -> None:
        put_many(store, 3)
        holding = paced(lambda asked: Grant(0, counting(asked).flow, wait=9))
        a = claim_one(store, pace=paced(counting))
        finish(store, a, report=report(a))
        for _ in range(3):
            claim(store, 1, pace=holding)
        claim(store, 1, pace=paced(counting))
        assert store.journal.get(FLOW) == b"1"

    def test_a_refused_settle_reports_nothing(self, store: Store) -> None:
        put_many(store, 2)
        taken = claim_one(store, pace=paced(counting))
        finish(store, taken)
        assert store.settle([finished(taken, report=report(taken))]) != ()
        claim(store, 1, pace=paced(counting))
        assert store.journal.get(FLOW) == b"0"

    def test_no_report_is_lost_or_counted_twice_among_four_threads(self, store: Store) -> None:
        put_many(store, 200)

        def work(worker: int) -> None:
            pace = paced(counting)
            for _ in as_long_as(lambda: store.backlog().open):
                taken = claim(store, 5, pace=pace, worker=worker).claims
                store.settle([finished(one, report=report(one)) for one in taken])

        together(*[lambda worker=worker: work(worker) for worker in (ALICE, BOB, ALICE, BOB)])
        put(store, "last")
        claim(store, 1, pace=paced(counting))
        assert store.journal.get(FLOW) == b"200"

    def test_a_paced_queue_is_served_in_turn_with_others(self, store: Store) -> None:
        put_many(store, 100, "paced")
        put_many(store, 3, "other", queue="other")
        pace = paced(lambda asked: Grant(min(1, asked.want)))
        served = [claim_one(store, pace=pace).queue for _ in range(10)]
        assert served.count("other") == 3

    def test_two_paced_queues_are_both_served(self, store: Store) -> None:
        for queue in ("x", "y"):
            put_many(store, 20, queue, queue=queue)
        pace = ScriptedPace({queue: lambda asked: Grant(min(2, asked.want)) for queue in ("x", "y")})
        served = [one for _ in range(8) for one in claim_ids(store, 10, pace=pace)]
        assert {id.split("-")[0] for id in served} == {"x", "y"}

    def test_a_grant_beyond_what_was_wanted_brings_no_more(self, store: Store) -> None:
        put_many(store, 10)
        assert len(claim(store, 2, pace=paced(Grant(9))).claims) <= 2

    def test_a_granted_job_that_was_deferred_is_paced_again(self, store: Store) -> None:
        put(store, "a")
        pace = paced(lambda asked: Grant(asked.want))
        defer(store, claim_one(store, pace=pace))
        before = len(pace.asked)
        assert claim_one(store, pace=pace).id == "a"
        assert len(pace.asked) > before
        assert state(store, "a") is State.RUNNING
