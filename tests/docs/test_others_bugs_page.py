"""docs/others-bugs.md: forty of them, and every test that it names is there and runs."""

import re

import pytest

from tests.docs.pages import ROOT, tables

PAGE = (ROOT / "docs" / "others-bugs.md").read_text("utf-8")
ROWS = [row for table in tables(PAGE) for row in table[1:]]
FOLDERS = ("tests", "src/treppe/testing/contract")
TESTS = {
    name
    for folder in FOLDERS
    for file in (ROOT / folder).rglob("*.py")
    for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE)
}


def test_there_are_forty():
    assert len(ROWS) == 40
    assert len({row[0] for row in ROWS}) == 40


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_it_says_how_it_is_here_and_names_tests_that_exist(row):
    _, wrong, here, shown = row
    assert wrong
    assert here
    named = re.findall(r"`(\w+)`", shown)
    assert named
    assert set(named) <= TESTS
