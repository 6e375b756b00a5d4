"""Medians, targets and verdicts."""

import doctest

import pytest

from bench import figures, report
from bench.figures import Figure, Measured, Scale, Target, rotated, share


@pytest.mark.parametrize(
    ("sign", "bound", "value", "met"),
    [
        ("≥", 2.5, 2.5, True),
        ("≥", 2.5, 2.49, False),
        ("≤", 1.3, 1.3, True),
        ("≤", 1.3, 1.31, False),
        ("<", 50.0, 49.9, True),
        ("<", 50.0, 50.0, False),
    ],
)
def test_a_target_is_met_or_not(sign, bound, value, met):
    assert Target(sign, bound).met(value) is met


@pytest.mark.parametrize("module", [figures, report])
def test_the_examples_are_true(module):
    assert doctest.testmod(module).failed == 0 < doctest.testmod(module).attempted


def test_the_median_counts_not_the_best_run():
    figure = Figure("speed", (9.0, 2.0, 2.4), "×", Target("≥", 2.5))
    assert figure.middle == 2.4
    assert not figure.reached


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (Figure("a", (2.0,), "×", Target("≥", 2.5)), "missed by 20 %"),
        (Figure("a", (1.56,), "×", Target("≤", 1.3)), "missed by 20 %"),
        (Figure("a", (12.03,), "s", Target("≤", 12.0)), "missed by 0.25 %"),
        (Figure("a", (2.6,), "×", Target("≥", 2.5)), "reached"),
        (Figure("a", (2.6,), "×"), ""),
    ],
)
def test_the_verdict_says_by_how_much(figure, verdict):
    assert figure.verdict == verdict


def test_the_spread_is_between_the_extremes():
    assert Figure("a", (1.0, 2.0, 3.0)).spread == 1.0
    assert Figure("a", (0.0, 0.0)).spread == 0.0


def test_a_measure_with_trouble_has_reached_nothing():
    assert Measured("a", "A").reached
    assert not Measured("a", "A", trouble="it did not start").reached


def test_every_turn_begins_with_another_one():
    assert [rotated(["a", "b", "c"], turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert rotated([], 3) == []


def test_a_share_of_all_values_lies_below():
    values = [float(n) for n in range(200)]
    assert (share(values, 0.5), share(values, 0.99), share([7.0], 0.99)) == (100.0, 198.0, 7.0)


def test_quick_means_the_small_size():
    assert Scale(quick=True).pick(100, 1) == 1
    assert Scale().pick(100, 1) == 100
