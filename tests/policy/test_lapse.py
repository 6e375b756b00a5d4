from itertools import product

import pytest

from treppe.job import Event, Repeat
from treppe.policy.lapse import after_lapse

UNSAFE = [Repeat.LOOK, Repeat.ASK]


def lapse(repeat=Repeat.SAFE, suspect=False, cancelling=False, crashes=0, max_crashes=3, looking=False):
    return after_lapse(repeat, suspect, cancelling, crashes, max_crashes, looking)


def test_a_first_lapse_puts_a_safe_job_back_and_is_no_crash():
    assert lapse()[:2] == (Event.LAPSE, False)


def test_the_lapse_of_a_suspect_is_a_crash():
    assert lapse(suspect=True)[:2] == (Event.LAPSE, True)


def test_the_last_crash_buries_and_says_why():
    event, crashed, error = lapse(suspect=True, crashes=2)
    assert (event, crashed) == (Event.BURY, True)
    assert error == "it kills its worker: 3 of 3 crashes"


def test_a_job_that_is_no_suspect_is_not_buried_whatever_its_crashes():
    assert lapse(crashes=9).event is Event.LAPSE


@pytest.mark.parametrize("budget", [0, 1])
def test_without_a_budget_the_first_crash_buries(budget):
    assert lapse(suspect=True, max_crashes=budget).event is Event.BURY


@pytest.mark.parametrize("repeat", UNSAFE)
@pytest.mark.parametrize(("suspect", "cancelling", "crashes"), list(product([False, True], [False, True], [0, 9])))
def test_what_must_not_be_repeated_becomes_unclear_in_any_case(repeat, suspect, cancelling, crashes):
    assert lapse(repeat, suspect, cancelling, crashes)[:2] == (Event.DOUBT, suspect)


def test_a_safe_job_that_was_to_be_cancelled_is_cancelled():
    assert lapse(cancelling=True).event is Event.CANCEL
    assert lapse(cancelling=True, suspect=True, crashes=9).event is Event.CANCEL


def test_a_job_that_was_only_looked_at_stays_unclear():
    assert lapse(Repeat.LOOK, looking=True).event is Event.DOUBT
    assert lapse(Repeat.SAFE, looking=True).event is Event.DOUBT
