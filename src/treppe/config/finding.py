"""What is wrong, or could be better, in the settings: one value per sentence."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Level = Literal["error", "warning", "hint"]


class Finding(msgspec.Struct, frozen=True):
    """One sentence about one place. ``where`` is a key such as ``destination.crm.url``; ``line`` counts from 1."""

    level: Level
    where: str
    text: str
    cure: str = ""
    line: int | None = None

    @property
    def place(self) -> str:
        """The line, if it is known, and the key."""
        return (f"line {self.line}, " if self.line else "") + self.where

    def __str__(self) -> str:
        """The sentence for people.

        >>> print(Finding("error", "queue.crm.rat", 'there is no setting "rat"', 'Did you mean "rate"?', 7))
        line 7, queue.crm.rat: there is no setting "rat". Did you mean "rate"?
        """
        return f"{self.place}: {self.text}" + (f". {self.cure}" if self.cure else "")


def lines_of(toml: str) -> dict[str, int]:
    """On which line each table and key stands; for messages only, so strings over several lines may fool it.

    >>> lines_of('store = "x"' + chr(10) + '[queue."shop:a"]' + chr(10) + 'rate = "2/s"')
    {'store': 1, 'queue.shop:a': 2, 'queue.shop:a.rate': 3}
    """
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(toml.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _plain(header[1])
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault(f"{table}.{_plain(key[1])}".lstrip("."), number)
    return found


def line_of(lines: dict[str, int], where: str) -> int | None:
    """The line of a place, or of the nearest thing around it.

    >>> line_of({"destination.crm.auth": 9}, "destination.crm.auth.token")
    9
    """
    while where and where not in lines:
        where = where.rpartition(".")[0]
    return lines.get(where)


_WORD = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")


def _plain(dotted: str) -> str:
    return ".".join(word.strip("\"'") for word in re.findall(_WORD, dotted))
