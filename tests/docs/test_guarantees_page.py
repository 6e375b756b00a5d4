"""docs/guarantees.md: every promise is there, and each names tests that exist."""

import re

import pytest

from tests.docs.pages import ROOT
from treppe.testing.contract.suite import THEMES

PAGE = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
PROMISES = dict(re.findall(r"(?ms)^### ([IS]\d+): (.*?)(?=^###? |\Z)", PAGE))
NUMBERS = [*(f"I{n}" for n in range(1, 29)), *(f"S{n}" for n in range(1, 8))]
NOT_IN_THIS_VERSION = {"I25", "I28"}


def shown_by(promise: str) -> list[str]:
    tests = promise.partition("**Shown by**")[2]
    return re.findall(r"\*(\w+)\*|`([^`]+)`", tests)


def test_every_promise_has_its_place():
    assert list(PROMISES) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_each_names_tests_that_exist(number):
    tests = shown_by(PROMISES[number])
    assert bool(tests) == (number not in NOT_IN_THIS_VERSION)
    assert [theme for theme, _ in tests if theme and theme not in {each.__name__ for each in THEMES}] == []
    assert [file for _, file in tests if file and not (ROOT / file).exists()] == []


def test_every_theme_of_the_contract_shows_something():
    used = {theme for promise in PROMISES.values() for theme, _ in shown_by(promise)}
    assert {theme.__name__ for theme in THEMES} - used <= {"Health", "Journals"}
