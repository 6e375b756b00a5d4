"""What commands print: one JSON document, or tables for people; what is not asked for goes to stderr.

Ids, errors and payloads come from outside, so everything is made harmless for a terminal first.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from treppe.eyes.plain import line, plain
from treppe.eyes.words import Words, iso

WORDS = Words("en")


def document(value: Any) -> None:
    """One JSON document on stdout. Points in time become ISO 8601."""
    readable = _times(msgspec.to_builtins(value))
    click.echo(msgspec.json.format(msgspec.json.encode(readable), indent=2))


def say(text: str) -> None:
    """A text for people on stdout, as it stands, over several lines if need be."""
    click.echo(plain(text))


def note(text: str) -> None:
    """Something beside the answer, on stderr."""
    click.echo(plain(text), err=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], nothing: str, numbers: Sequence[str] = ()) -> None:
    """A table; *numbers* names the columns that stand to the right. Plain text where stdout is no terminal."""
    texts = [[line(str(cell), 80) for cell in row] for row in rows]
    if not texts:
        note(nothing)
    elif not (sys.stdout.isatty() and _rich_table(columns, texts, numbers)):
        _plain_table(columns, texts, numbers)


def fields(pairs: Sequence[tuple[str, object]]) -> None:
    """Names and values, one a line; what is None or empty is left out."""
    shown = [(name, plain(str(value))) for name, value in pairs if value not in (None, "")]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{name:<{width}}  {value}")


def age(seconds: float | None) -> str:
    """A duration for people; empty for none."""
    return "" if seconds is None else WORDS.span(seconds)


def _times(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _times(each, key) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_times(each) for each in value]
    if isinstance(value, float) and (name in ("at", "since") or name.endswith("_at")):
        return iso(value)
    return value


def _plain_table(columns: Sequence[str], rows: list[list[str]], numbers: Sequence[str]) -> None:
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        cells = [
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def _rich_table(columns: Sequence[str], rows: list[list[str]], numbers: Sequence[str]) -> bool:
    """False where rich is not installed."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        shown.add_row(*map(Text, row))
    Console().print(shown)
    return True
