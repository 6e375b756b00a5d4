"""docs/decisions.md: every decision in the same five lines."""

import re

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "decisions.md").read_text("utf-8")
DECISIONS = dict(re.findall(r"(?ms)^### (.+?)$(.*?)(?=^##|\Z)", PAGE))
LINES = ["What", "Why", "Instead of", "Price", "Where"]


def test_there_are_decisions():
    assert len(DECISIONS) > 20


@pytest.mark.parametrize("decision", DECISIONS)
def test_it_has_its_five_lines(decision):
    lines = DECISIONS[decision].strip().splitlines()
    assert [re.sub(r"- \*\*(.+?):\*\* .+", r"\1", line) for line in lines] == LINES
