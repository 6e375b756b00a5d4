import pytest

from treppe.store.protocol import Upkept
from treppe.testing.clock import ManualClock
from treppe.upkeep import Upkeep


class Store:
    """Notes whether it was allowed to lapse."""

    lease = 10.0

    def __init__(self) -> None:
        self.might_lapse: list[bool] = []

    def upkeep(self, after_lapse):
        self.might_lapse.append(after_lapse is not None)
        return Upkept(more=len(self.might_lapse) < 3)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_after_a_start_nothing_lapses_for_one_lease(store, clock):
    upkeep = Upkeep(store, clock)
    upkeep.round()
    clock.advance(9.9)
    upkeep.round()
    assert upkeep.patience == pytest.approx(0.1)
    clock.advance(0.1)
    upkeep.round()
    assert upkeep.patience == 0.0
    assert store.might_lapse == [False, False, True]


def test_after_trouble_with_the_store_everybody_gets_a_lease_again(store, clock):
    upkeep = Upkeep(store, clock)
    clock.advance(60)
    upkeep.trouble()
    upkeep.round()
    clock.advance(10)
    upkeep.round()
    assert store.might_lapse == [False, True]


def test_a_round_says_what_it_did(store, clock):
    upkeep = Upkeep(store, clock)
    assert [upkeep.round().more for _ in range(3)] == [True, True, False]
