"""Upkeep is several transactions. Whatever others do in the n-th gap between them, for n = 1, 2, 3 …, stays done."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.sim.places import Place, PostgresPlace, SQLitePlace
from treppe.job import Event, State
from treppe.settle import AFTER_LAPSE
from treppe.store.protocol import Seen
from treppe.testing.clock import ManualClock
from treppe.testing.contract import verbs

LOST, OTHER = 11, 12
MOST_GAPS = 50


def in_each_gap(place: Place, prepare: Callable[[Any], Any], meddle: Callable[[Any, Any], Any], look: Any) -> int:
    """Upkeep once for each of its gaps, in which somebody else meddles; *look* at what has come of it. How many."""
    for gap in range(1, MOST_GAPS):
        place.fresh()
        clock = ManualClock()
        others, ours = place.open(clock), place.open(clock)
        for worker in (LOST, OTHER):
            others.enlist(worker, str(worker), verbs.FOREVER)
        held = prepare(others)
        came = []
        _hook(ours, gap, lambda: came.append(meddle(others, held)))  # noqa: B023 - it is called before the next round
        ours.upkeep(AFTER_LAPSE)
        if not came:
            return gap - 1
        look(others, came[0])
    raise AssertionError(f"upkeep has more than {MOST_GAPS} gaps")


def _hook(store: Any, gap: int, act: Callable[[], object]) -> None:
    """Call *act* before the transaction of that number."""
    database, seen = store._database, [0]

    def hooked(transact: Callable[..., Any]) -> Callable[..., Any]:
        def call(*work: Any) -> Any:
            seen[0] += 1
            if seen[0] == gap:
                act()
            return transact(*work)

        return call

    for name in ("read", "write", "once"):
        if hasattr(database, name):
            setattr(database, name, hooked(getattr(database, name)))


def a_lost_claim(store: Any) -> Any:
    verbs.put(store, "a")
    claim = verbs.claim_one(store, worker=LOST)
    store.retire(LOST)
    return claim


class Gaps:
    """The same on every store."""

    def test_a_job_that_was_settled_and_claimed_meanwhile_is_left_alone(self, place):
        def settle_and_claim(store, held):
            if store.settle([verbs.deferred(held)]):
                return None  # it had lapsed, and run by nobody: refused is what a second end would be
            return verbs.claim_one(store, worker=OTHER, alone=verbs.read(store, "a").suspect)

        def still_runs(store, claim):
            assert claim is not None
            assert (verbs.read(store, "a").state, verbs.read(store, "a").token) == (State.RUNNING, claim.token)
            verbs.finish(store, claim)
            assert [line.event for line in verbs.read(store, "a").history].count(Event.FINISH) == 1

        assert in_each_gap(place, a_lost_claim, settle_and_claim, still_runs) >= 3

    def test_a_job_that_was_done_meanwhile_stays_done(self, place):
        def finish(store, held):
            verbs.finish(store, held)

        def is_done(store, _):
            assert verbs.state(store, "a") is State.DONE
            assert store.backlog().done == 1

        assert in_each_gap(place, a_lost_claim, finish, is_done) >= 3

    def test_a_job_that_was_cancelled_meanwhile_does_not_expire(self, place):
        def cancel(store, _):
            return store.change([Seen("a", 0)], Event.CANCEL, "anna", "too late") == ()

        def is_cancelled_if_that_counted(store, counted):
            assert verbs.state(store, "a") is (State.CANCELLED if counted else State.DEAD)
            assert [line.event for line in verbs.read(store, "a").history][-1:] == [Event.CANCEL]

        expired = lambda store: verbs.put(store, "a", expires=0.0)  # noqa: E731
        assert in_each_gap(place, expired, cancel, is_cancelled_if_that_counted) >= 2


class TestOnSQLite(Gaps):
    @pytest.fixture
    def place(self) -> Iterator[Place]:
        place = SQLitePlace()
        yield place
        place.close()


class TestOnPostgres(Gaps):
    @pytest.fixture
    def place(self, postgres18) -> Iterator[Place]:
        place = PostgresPlace(postgres18)
        yield place
        place.close()
