"""The real pace on the real store: rate over any window, concurrency, holds, probes and pauses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from treppe.config import Rate
from treppe.job import Claim, Kind, Report, Settlement
from treppe.policy.pace import Flow, Limits, Pacer, decode, encode, pause, resume
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract, together
from treppe.testing.contract.verbs import (
    QUEUE,
    claim,
    claim_ids,
    deferred,
    finished,
    new_worker,
    put,
    put_many,
)

FLOW = f"flow:{QUEUE}"
Turn = Callable[[Flow], Flow]


class Paced(Contract):
    """What ``policy.pace`` promises, kept by store and policy together."""

    @pytest.mark.parametrize(
        "limits",
        [Limits(Rate(5, 10.0)), Limits(Rate(5, 10.0), burst=3), Limits(Rate(1, 2.0)), Limits(Rate(40, 1.0))],
        ids=["spread", "burst", "one", "fast"],
    )
    def test_a_rate_holds_in_every_window_and_is_used_up(
        self, store: Store, clock: ManualClock, limits: Limits
    ) -> None:
        assert limits.rate is not None
        pace, starts, begin = Pacer({QUEUE: limits}), list[float](), clock()
        put_many(store, 200)
        while len(starts) < 200 and clock() < begin + 100:
            taken = claim(store, 20, pace=pace).claims
            starts += [max(one.start_at, clock()) for one in taken]
            store.settle([ok(one) for one in taken])
            clock.advance(0.25)
        starts.sort()
        assert busiest_window(starts, limits.rate.per) <= limits.rate.n
        lasting = (limits.rate.n - limits.spare) / limits.rate.per
        assert len(starts) == 200 or len(starts) >= 0.95 * lasting * 100

    def test_a_rate_holds_among_threads(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 100)
        pace, starts, begin = Pacer({QUEUE: Limits(Rate(10, 1.0))}), list[float](), clock()

        def work() -> None:
            worker = new_worker(store, 1e6)
            while len(starts) < 100 and clock() < begin + 60:
                taken = claim(store, 3, pace=pace, worker=worker).claims
                starts.extend(one.start_at for one in taken)
                store.settle([ok(one) for one in taken])
                if not taken:
                    clock.advance(0.05)

        together(work, work, work)
        assert len(starts) == 100
        assert busiest_window(sorted(starts), 1.0) <= 10

    def test_concurrency_holds_and_is_used(self, store: Store) -> None:
        put_many(store, 20)
        pace = Pacer({QUEUE: Limits(concurrent=3)})
        first = claim(store, 10, pace=pace).claims
        assert (len(first), claim_ids(store, pace=pace)) == (3, [])
        assert len(claim(store, 10, pace=pace, settling=[ok(one) for one in first[:2]]).claims) == 2

    def test_a_throttled_queue_is_held_as_long_as_was_asked_then_probed_then_open(
        self, store: Store, clock: ManualClock
    ) -> None:
        put_many(store, 20)
        pace = Pacer({QUEUE: Limits(concurrent=5)})
        taken = claim(store, 2, pace=pace).claims
        store.settle([deferred(one, kind=Kind.THROTTLED, report=report(one, Kind.THROTTLED, 30.0)) for one in taken])
        brought = claim(store, 5, pace=pace)
        assert brought.claims == ()
        assert brought.next_in == pytest.approx(31.5, abs=1.6)
        clock.advance(29.9)
        assert claim_ids(store, 5, pace=pace) == []
        clock.advance(3.2)
        (probe,) = claim(store, 5, pace=pace).claims
        assert probe.probe
        assert claim_ids(store, 5, pace=pace) == []
        assert len(claim(store, 5, pace=pace, settling=[ok(probe)]).claims) >= 3

    def test_a_probe_that_is_never_heard_of_is_followed_by_another(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 20)
        pace = Pacer({QUEUE: Limits(concurrent=5)})
        (one,) = claim(store, 1, pace=pace).claims
        store.settle([deferred(one, report=report(one, Kind.THROTTLED, after=1.0), delay=3600)])
        claim(store, 1, pace=pace)
        clock.advance(2)
        assert len(claim_ids(store, 5, pace=pace)) == 1
        clock.advance(61)
        assert len(claim_ids(store, 5, pace=pace)) == 1

    def test_three_connection_failures_in_a_row_shut_the_queue(self, store: Store, clock: ManualClock) -> None:
        put_many(store, 20)
        pace = Pacer({QUEUE: Limits(concurrent=5)})
        for one in claim(store, 3, pace=pace).claims:
            store.settle([deferred(one, kind=Kind.DOWN, report=report(one, Kind.DOWN), delay=3600)])
        assert claim_ids(store, 5, pace=pace) == []
        clock.advance(6)
        (probe,) = claim(store, 5, pace=pace).claims
        assert probe.probe
        assert len(claim(store, 5, pace=pace, settling=[ok(probe)]).claims) >= 1

    @pytest.mark.parametrize("limits", [{}, {QUEUE: Limits(concurrent=5)}], ids=["without limits", "limited"])
    def test_a_pause_by_hand_stops_any_queue_until_it_is_resumed(
        self, store: Store, clock: ManualClock, limits: dict[str, Limits]
    ) -> None:
        put_many(store, 20)
        put(store, "other", queue="other")
        pace = Pacer(limits)
        turn(store, lambda flow: pause(flow, "anna", clock()))
        assert claim_ids(store, 5, pace=pace) == ["other"]
        clock.advance(86400)
        assert claim_ids(store, 5, pace=pace) == []
        turn(store, lambda flow: resume(flow, clock()))
        assert len(claim_ids(store, 5, pace=pace)) == 5

    def test_the_jobs_of_a_queue_pattern_have_flows_of_their_own(self, store: Store) -> None:
        for shop in ("shop:a", "shop:b"):
            put_many(store, 5, shop, queue=shop)
        pace = Pacer({"shop:*": Limits(concurrent=1)})
        taken = [id for _ in range(4) for id in claim_ids(store, 5, pace=pace)]
        assert sorted(taken) == ["shop:a-0", "shop:b-0"]


def turn(store: Store, how: Turn) -> None:
    """A human changes the flow of the usual queue."""
    old = store.journal.get(FLOW)
    assert store.journal.swap(FLOW, old, encode(how(decode(old))))


def report(claim: Claim, kind: Kind, after: float | None = None) -> Report:
    """What a settle learned about the queue."""
    return Report(kind, claim.seq, after=after, probe=claim.probe)


def ok(claim: Claim) -> Settlement:
    """A success, told to the queue."""
    return finished(claim, report=report(claim, Kind.OK))


def busiest_window(starts: list[float], per: float) -> int:
    """The most starts in any half-open window of that length."""
    return max(sum(start <= other < start + per for other in starts) for start in starts)
