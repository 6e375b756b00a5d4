import pytest

from treppe.store.protocol import Upkept
from treppe.testing.clock import ManualClock
from treppe.upkeep import ROUNDS_PER_LEASE, Upkeep


class Store:
    """Notes whether it was allowed to lapse."""

    lease = 10.0

    def __init__(self) -> None:
        self.might_lapse: list[bool] = []
        self.answer: Upkept | None = None

    def upkeep(self, after_lapse):
        self.might_lapse.append(after_lapse is not None)
        return self.answer or Upkept(more=len(self.might_lapse) < 3)


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


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        (Upkept(), 1.0),
        (Upkept(look_in=0.25), 0.25),
        (Upkept(look_in=60.0), 10.0 / ROUNDS_PER_LEASE),
        (Upkept(look_in=60.0, more=True), 0.0),
        (Upkept(look_in=60.0, lapsed=1), 0.0),  # what lapsed may be claimed at once
    ],
)
def test_the_next_round_is_due_when_the_store_says_and_never_long_after_a_lease_ran_out(store, clock, answer, rest):
    upkeep = Upkeep(store, clock)
    clock.advance(10)
    store.answer = answer
    assert upkeep.turn() == pytest.approx(rest)


def test_the_next_round_is_due_when_the_lease_after_a_start_is_over(store, clock):
    upkeep = Upkeep(store, clock)
    store.answer = Upkept()
    clock.advance(9.75)
    assert upkeep.turn() == pytest.approx(0.25)
    clock.advance(0.25)
    assert upkeep.turn() == 1.0
    assert store.might_lapse == [False, True]
