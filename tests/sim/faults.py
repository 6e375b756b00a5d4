"""Which calls go wrong, and how: drawn from the seed, at the strength that the scenario sets."""

from __future__ import annotations

from enum import Enum
from random import Random

import msgspec

from tests.sim.kernel import Process


class End(Enum):
    """How a call of the store ends."""

    OK = "ok"
    FAILED = "failed before anything was done"
    UNKNOWN = "done, but the answer was lost"
    LATER = "the answer was lost, and it is done later"
    CRASH_BEFORE = "the caller is killed before"
    CRASH_AFTER = "the caller is killed after it was done"


class Strength(msgspec.Struct, frozen=True):
    """Shares of all calls."""

    failed: float = 0.0
    unknown: float = 0.0
    later: float = 0.0
    crash: float = 0.0
    slow: float = 0.0  # so many answers take seconds instead of milliseconds


CALM = Strength()


class Faults:
    """What befalls the calls of one world. ``away`` is set while the store answers nobody."""

    def __init__(self, random: Random, strength: Strength) -> None:
        self._random = random
        self.strength = strength
        self.away = False
        self.cut_off: set[str] = set()  # processes that do not reach the store
        self.counts: dict[str, int] = {}

    def heal(self) -> None:
        self.strength, self.away = CALM, False
        self.cut_off.clear()

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    def end_of(self, process: Process, may_be_later: bool) -> End:
        """How the next call of *process* ends."""
        end = self._draw(process.name, may_be_later)
        if end in (End.CRASH_BEFORE, End.CRASH_AFTER) and not process.mortal:
            return End.OK
        if end is not End.OK:
            self.count(end.name.lower())
        return end

    def _draw(self, process: str, may_be_later: bool) -> End:
        if self.away or process in self.cut_off:
            return End.FAILED
        strength, roll = self.strength, self._random.random()
        for end, share in (
            (End.FAILED, strength.failed),
            (End.UNKNOWN, strength.unknown),
            (End.LATER, strength.later if may_be_later else 0.0),
            (End.CRASH_BEFORE, strength.crash / 2),
            (End.CRASH_AFTER, strength.crash / 2),
        ):
            if roll < share:
                return end
            roll -= share
        return End.OK

    def latency(self) -> float:
        """Seconds on the way, one way."""
        roll = self._random.random()
        if roll < self.strength.slow:
            return self._random.choice((0.5, 2.0, 4.0, 12.0))
        return 0.0002 + roll * 0.002

    def gap(self) -> float:
        """Seconds between two transactions of one call."""
        if self.strength is not CALM and self._random.random() < 0.03:
            return self._random.choice((0.05, 0.5, 3.0))
        return self.latency()
