"""Reads a TOML table by a description of it, and keeps reading when something is wrong.

A :class:`Shape` says which keys a table may hold and how each is read. The reader collects every problem;
a key that could not be read counts as absent, so that the rest is looked at too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from treppe.config.finding import Finding, line_of
from treppe.config.parse import shown
from treppe.config.words import closest, did_you_mean
from treppe.errors import ConfigError

Convert = Callable[[Any], Any]
"""Reads one value, or raises ConfigError; the reader adds the place."""

ABSENT: Any = object()
"""Stands for a value that could not be read."""


@dataclass(frozen=True)
class Shape:
    """What a table may hold, and what is made of it."""

    make: Callable[..., Any]  # called with the fields that were there
    keys: Mapping[str, Convert | Shape | Named]
    fields: Mapping[str, str] = field(default_factory=dict)  # key -> field of ``make``, where the names differ
    required: tuple[str, ...] = ()
    later: tuple[str, ...] = ()  # keys of versions to come
    words: Mapping[str, Any] = field(default_factory=dict)  # texts that may stand instead of the table


@dataclass(frozen=True)
class Named:
    """Tables with names of the user's choice: ``[queue.NAME]``. The shape's ``make`` gets the name first."""

    shape: Shape
    pattern: str
    rule: str


@dataclass
class Reader:
    """Collects what is wrong while it reads."""

    lines: dict[str, int]
    findings: list[Finding] = field(default_factory=list)

    def read(self, shape: Shape, value: Any, where: str = "", *given: Any) -> Any:
        """What ``shape.make`` returns, or ``ABSENT`` where it could not be made."""
        if isinstance(value, str) and value in shape.words:
            return shape.words[value]
        if not isinstance(value, dict):
            words = "".join(f'"{word}" or ' for word in shape.words)
            return self.wrong(where, f"{shown(value)} is not a table", f"Write {words}{_example(shape, where)}")
        fields = {shape.fields.get(key, key): found for key, found in self._values(shape, value, where)}
        for key in _missing(shape, value):
            self.wrong(_join(where, key), "this is missing", f"Add: {key} = …")
        if any(shape.fields.get(key, key) not in fields for key in shape.required):
            return ABSENT
        try:
            return shape.make(*given, **fields)
        except ConfigError as error:
            return self.wrong(_join(where, error.where), error.problem, error.cure)

    def wrong(self, where: str, text: str, cure: str = "") -> Any:
        """Take note of one problem; what had it counts as absent."""
        self.findings.append(Finding("error", where, text, cure, line_of(self.lines, where)))
        return ABSENT

    def _values(self, shape: Shape, table: dict[str, Any], where: str) -> list[tuple[str, Any]]:
        """The keys that could be read, with their values."""
        values = [(key, self._value(shape, key, value, _join(where, key))) for key, value in table.items()]
        return [(key, value) for key, value in values if value is not ABSENT]

    def _value(self, shape: Shape, key: str, value: Any, where: str) -> Any:
        rule = shape.keys.get(key)
        if rule is None:
            return self._unknown(shape, key, where)
        if isinstance(rule, Shape):
            return self.read(rule, value, where)
        if isinstance(rule, Named):
            return self._named(rule, value, where)
        try:
            return rule(value)
        except ConfigError as error:
            return self.wrong(where, error.problem, error.cure)

    def _named(self, rule: Named, value: Any, where: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
            self.wrong(where, "its settings belong to a name", f"Write the table as [{where}.NAME]")
            return found
        for name, table in value.items():
            if not re.fullmatch(rule.pattern, name):
                small = f'Did you mean "{name.lower()}"? ' if re.fullmatch(rule.pattern, name.lower()) else ""
                self.wrong(_join(where, name), f"{shown(name)} is not a good name", small + rule.rule)
            found[name] = self.read(rule.shape, table, _join(where, name), name)
        return {name: made for name, made in found.items() if made is not ABSENT}

    def _unknown(self, shape: Shape, key: str, where: str) -> Any:
        if key in shape.later:
            return self.wrong(where, f"not available in this version: {key}", "Take it out of the settings")
        if key in _AT_THE_TOP and key != where:
            cure = "Move it to the top of the file, above the first [table]"
            return self.wrong(where, f'"{key}" does not belong here', cure)
        return self.wrong(where, f'there is no setting "{key}"', did_you_mean(key, shape.keys))


_AT_THE_TOP = ("store", "app", "language")


def _missing(shape: Shape, table: Mapping[str, Any]) -> list[str]:
    """The required keys that are not there, unless they are only misspelt, or a table of a version to come."""
    if any(key in shape.later for key in table):
        return []
    meant = {closest(key, shape.keys) for key in table if key not in shape.keys}
    return [key for key in shape.required if key not in table and key not in meant]


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where and key else where or key


def _example(shape: Shape, where: str) -> str:
    keys = ", ".join(f"{key} = …" for key in shape.required or list(shape.keys)[:2])
    return f"{{ {keys} }}" if where.count(".") > 1 else f"a table [{where}]"
