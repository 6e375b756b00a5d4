import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.config import Backoff
from treppe.policy.retry import LONGEST_ASKED, SHORT, backoff, snooze

ROLLS = st.floats(0, 1, exclude_max=True)
RULES = st.builds(
    Backoff,
    base=st.floats(0, 86400),
    factor=st.floats(1, 100),
    cap=st.floats(0, 30 * 86400),
    jitter=st.booleans(),
)


@pytest.mark.parametrize(("failures", "longest"), [(0, 10), (1, 30), (2, 90), (5, 2430), (6, 7200), (1000, 7200)])
def test_the_default_triples_from_ten_seconds_up_to_two_hours(failures, longest):
    assert backoff(Backoff(jitter=False), failures, roll=0.3) == longest
    assert backoff(Backoff(), failures, roll=0.0) == 1.0
    assert backoff(Backoff(), failures, roll=math.nextafter(1, 0)) == pytest.approx(longest)


@given(RULES, st.integers(0, 10**6), ROLLS)
def test_a_wait_lies_between_a_tenth_of_the_base_and_the_cap(rule, failures, roll):
    wait = backoff(rule, failures, roll)
    assert min(rule.base / 10, rule.cap) <= wait <= rule.cap


@given(RULES, st.integers(0, 50), ROLLS, st.floats(0, LONGEST_ASKED))
def test_a_retry_after_is_never_undercut_and_jitter_only_adds_to_it(rule, failures, roll, after):
    wait = backoff(rule, failures, roll, after)
    assert max(after, min(rule.base / 10, rule.cap, LONGEST_ASKED)) <= wait <= LONGEST_ASKED
    if not rule.jitter:
        assert wait == min(max(after, min(rule.base / 10, rule.cap)), LONGEST_ASKED)


def test_a_retry_after_wins_over_a_longer_backoff():
    assert backoff(Backoff(jitter=False), 9, roll=0.0, after=60.0) == 60.0


@pytest.mark.parametrize("after", [0.0, -5.0, -math.inf, math.nan])
def test_a_retry_after_that_says_nothing_useful_means_the_floor(after):
    assert backoff(Backoff(), 9, roll=0.0, after=after) == 1.0


@pytest.mark.parametrize("after", [86401.0, 31 * 365 * 86400.0, math.inf])
def test_nobody_may_ask_for_more_than_a_day(after):
    assert backoff(Backoff(), 0, roll=0.9, after=after) == LONGEST_ASKED


def test_a_short_wait_grows_to_five_minutes():
    assert [backoff(SHORT, n, roll=1.0) for n in (0, 1, 5, 6, 99)] == [5, 10, 160, 300, 300]


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_handlers_own_wish_is_bounded_and_otherwise_kept(after):
    wait = snooze(after)
    assert 0.0 <= wait <= 3650 * 86400.0
    assert wait == after or not 0 <= after <= 3650 * 86400.0
