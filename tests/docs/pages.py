"""The pages people read, cut into the blocks that can be tried.

A comment right before a block says what a test cannot see: ``<!-- not run: why -->`` or ``<!-- stays open -->`` (it
keeps its terminal). A block whose first line is ``# name.ext`` is the content of that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
REMARK = re.compile(r"<!-- (.+?) -->\n+\Z")
FILE_NAME = re.compile(r"# ([\w./-]+\.\w+)\n")


class Block(msgspec.Struct, frozen=True):
    """One fenced block. ``says`` is the ``text`` block right behind it: what it prints."""

    kind: str
    text: str
    line: int
    remark: str = ""
    says: str | None = None

    @property
    def file(self) -> str | None:
        """The file it is the content of."""
        named = FILE_NAME.match(self.text)
        return named[1] if named else None


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page text, in order."""
    matches: list[re.Match[str] | None] = [*FENCE.finditer(page), None]
    found = []
    for match, follower in pairwise(matches):
        assert match
        between = "" if follower is None else page[match.end() : follower.start()]
        answers = follower is not None and follower[1] == "text" and not between.strip()
        remark = REMARK.search(page[: match.start()])
        found.append(
            Block(
                match[1],
                match[2],
                page.count("\n", 0, match.start()) + 2,
                remark[1] if remark else "",
                follower[2] if answers and follower else None,
            )
        )
    return found


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    return FENCE.sub("", page)


def code_spans(page: str) -> list[str]:
    """Everything in the prose that stands between backticks."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def commands(page: str) -> Iterator[str]:
    """Every call of ``treppe`` that a page shows, from blocks and from the prose."""
    lines = [line for block in blocks(page) for line in block.text.splitlines()]
    for text in [*lines, *code_spans(page)]:
        if call := re.search(r"(?:^|(?<!from)(?<!SCHEMA)[\s/=;&|(])treppe ((?:--?\w|\w).*)$", text):
            yield re.split(r"\s(?:[|&;>#]|2>)|  +#", call[1])[0]


def tables(page: str) -> list[list[list[str]]]:
    """Every table as rows of cells, the heading first."""
    found: list[list[list[str]]] = []
    inside = False
    for line in page.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if not inside:
            found.append([])
        inside = True
        if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            found[-1].append(cells)
    return found
