"""What a measure brings: figures with their runs, their middle and, where there is one, the target."""

from __future__ import annotations

import operator
from statistics import median
from typing import Literal

import msgspec


class Target(msgspec.Struct, frozen=True):
    """What a figure has to reach.

    >>> str(Target("≥", 2.5)), Target("<", 50.0).met(50.0)
    ('≥ 2.5', False)
    """

    sign: Literal["≥", "≤", "<"]
    bound: float

    def met(self, value: float) -> bool:
        """Is this value good enough?"""
        return bool(_MET[self.sign](value, self.bound))

    def __str__(self) -> str:
        """As people write it."""
        return f"{self.sign} {self.bound:g}"


_MET = {"≥": operator.ge, "≤": operator.le, "<": operator.lt}


class Figure(msgspec.Struct, frozen=True):
    """One figure: what each run brought, in the unit given. With a *chart* it is drawn there, as the bar of *who*.

    >>> speed = Figure("Treppe ÷ huey", (2.0, 2.6, 1.8), "×", Target("≥", 2.5))
    >>> speed.middle, speed.verdict
    (2.0, 'missed by 20 %')
    """

    name: str
    runs: tuple[float, ...]
    unit: str = ""
    target: Target | None = None
    chart: str = ""
    who: str = ""

    @property
    def middle(self) -> float:
        """The median of the runs."""
        return median(self.runs)

    @property
    def spread(self) -> float:
        """How far the runs lie apart: (largest - smallest) / median."""
        return (max(self.runs) - min(self.runs)) / self.middle if self.middle else 0.0

    @property
    def reached(self) -> bool:
        """False only when there is a target and the median misses it."""
        return self.target is None or self.target.met(self.middle)

    @property
    def verdict(self) -> str:
        """Reached, or by how much it was missed; nothing without a target."""
        if self.target is None:
            return ""
        if self.reached:
            return "reached"
        by = abs(self.middle - self.target.bound) / self.target.bound
        return f"missed by {by:.{0 if by >= 0.01 else 2}%}".replace("%", " %")


class Measured(msgspec.Struct):
    """What one measure brought. ``trouble`` says why it brought nothing."""

    name: str
    title: str
    figures: list[Figure] = []
    notes: list[str] = []
    seconds: float = 0.0
    trouble: str = ""

    @property
    def reached(self) -> bool:
        """True when it worked and every target was reached."""
        return not self.trouble and all(figure.reached for figure in self.figures)


class Scale(msgspec.Struct, frozen=True):
    """How much to measure; *peers* are the names of those that take part beside Treppe, and none means all."""

    runs: int = 3
    quick: bool = False
    peers: tuple[str, ...] = ()

    def pick(self, full: int, quick: int) -> int:
        """The size for this run.

        >>> Scale(quick=True).pick(100_000, 20_000)
        20000
        """
        return quick if self.quick else full


def rotated(things: list[str], turn: int) -> list[str]:
    """The same things, beginning with another one each turn, so that nothing always runs first.

    >>> rotated(["a", "b", "c"], 1)
    ['b', 'c', 'a']
    """
    start = turn % len(things) if things else 0
    return things[start:] + things[:start]


def share(values: list[float], q: float) -> float:
    """The value below which the share *q* of all values lies.

    >>> share([1.0, 2.0, 3.0, 4.0], 0.5)
    3.0
    """
    return sorted(values)[min(len(values) - 1, int(len(values) * q))]
