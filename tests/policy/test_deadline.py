import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.policy.deadline import late, left, used

TIMES = st.floats(0, 4e9)


@pytest.mark.parametrize(
    ("now", "level"), [(0, 0), (1000, 0), (1449.9, 0), (1450, 50), (1899, 50), (1900, 100), (9e9, 100)]
)
def test_late_is_told_at_half_and_at_all_of_the_promise(now, level):
    assert late(due_at=1000.0, deadline_at=1900.0, now=now) == level


def test_without_a_promise_nothing_is_late():
    assert late(due_at=0.0, deadline_at=None, now=9e9) == 0


@pytest.mark.parametrize("promise", [0.0, -5.0])
def test_a_promise_of_no_time_at_all_is_broken_at_once(promise):
    assert [late(100.0, 100.0 + promise, now) for now in (90.0, 100.0)] == [0, 100]


def test_what_is_left_turns_negative():
    assert [left(200.0, now) for now in (150.0, 200.0, 260.0)] == [50.0, 0.0, -60.0]


@given(TIMES, TIMES, TIMES)
def test_the_promise_is_used_up_exactly_when_nothing_is_left(due_at, deadline_at, now):
    assert used(due_at, deadline_at, now) >= 0.0
    assert (late(due_at, deadline_at, now) == 100) == (left(deadline_at, now) <= 0)
