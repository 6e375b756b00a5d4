"""What people read, in their language: one catalogue file per language beside this one.

>>> words = Words("en")
>>> words("nav.jobs"), words("dead.group", n=1), words("dead.group", n=1234)
('Jobs', '1 job', '1,234 jobs')
>>> Words("de")("dead.group", n=1234)
'1.234 Aufträge'
"""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

LANGUAGES: Final = ("en", "de")


class Words:
    """The texts of one language, and how it writes numbers, times and durations."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else "en"
        self._texts = catalogue(self.language)

    def __call__(self, key: str, **values: object) -> str:
        """The text for *key* with *values* put in; ``n`` chooses between ``one`` and ``many``.

        An unknown key is a :class:`KeyError`: texts come from the program, never from a visitor.
        """
        count = values.get("n")
        if isinstance(count, int):
            key = self._plural(key, count)
            values["n"] = self.number(count)
        return self._texts[key].format(**values) if values else self._texts[key]

    def number(self, value: float) -> str:
        """A number as people write it.

        >>> Words("de").number(1234567), Words("en").number(0.5)
        ('1.234.567', '0.5')
        """
        plain = f"{value:,}"
        swapped = {",": self._texts["unit.thousands"], ".": self._texts["unit.decimal"]}
        return "".join(swapped.get(sign, sign) for sign in plain)

    def share(self, value: float) -> str:
        """A share of one, in per cent.

        >>> Words("en").share(0.756)
        '76 %'
        """
        return f"{self.number(round(value * 100))} %"

    def span(self, seconds: float | None) -> str:
        """A duration, rounded to what matters.

        >>> words = Words("en")
        >>> [words.span(s) for s in (None, 0.4, 59, 61, 3700, 86400, 200000)]
        ['–', 'less than 1 s', '59 s', '1 min 1 s', '1 h 1 min', '1 day', '2 days 7 h']
        """
        if seconds is None:
            return self._texts["unit.none"]
        if seconds < 1:
            return self._texts["unit.now"]
        parts = _split(int(seconds))
        return " ".join(self(f"unit.{name}", n=n) for name, n in parts)

    def moment(self, at: float | None) -> str:
        """A point in time (Unix seconds) in this machine's time zone."""
        if at is None:
            return self._texts["unit.none"]
        return datetime.fromtimestamp(at).astimezone().strftime(self._texts["unit.moment"])

    def clock(self, at: float) -> str:
        """The time of day, for what is near."""
        return datetime.fromtimestamp(at).astimezone().strftime(self._texts["unit.clock"])

    def _plural(self, key: str, count: int) -> str:
        chosen = f"{key}.{'one' if count == 1 else 'many'}"
        return chosen if chosen in self._texts else key


@cache
def catalogue(language: str) -> dict[str, str]:
    """All texts of one language by dotted key."""
    return dict(_flat(tomllib.loads(files(__name__).joinpath(f"{language}.toml").read_text("utf-8"))))


def iso(at: float) -> str:
    """A point in time for machines.

    >>> iso(0)
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _flat(table: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for name, value in table.items():
        flat += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return flat


_UNITS: Final = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def _split(seconds: int) -> list[tuple[str, int]]:
    """The largest unit and the one below it, without zeros; *seconds* is at least 1."""
    index = next(index for index, (_, size) in enumerate(_UNITS) if seconds >= size)
    name, size = _UNITS[index]
    below = [(smaller, seconds % size // unit) for smaller, unit in _UNITS[index + 1 : index + 2]]
    return [(name, seconds // size), *[(smaller, n) for smaller, n in below if n]]
