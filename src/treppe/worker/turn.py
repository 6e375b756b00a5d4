"""What one turn of the engine may do, and what it brought."""

from __future__ import annotations

import time

import msgspec

from treppe.store.protocol import Claimed

LONGEST_WAIT = 1.25
"""Seconds after which the engine looks again in any case."""


class Budget(msgspec.Struct, frozen=True):
    """Until when (monotonic) a drain may claim, and how long it has in all."""

    until: float
    seconds: float

    def left(self) -> float:
        """Seconds that are left of it."""
        return self.until - time.monotonic()

    def carries(self, limit: float | None) -> bool:
        """Is there time for a job of this time limit? A limit above half of it all would never fit."""
        return self.left() >= min(limit or 0.0, self.seconds / 2)


class Turn(msgspec.Struct):
    """What one turn of the engine brought."""

    found: int = 0
    next_in: float | None = None
    again: bool = False  # there is more right now
    trouble: bool = False
    chores_in: float = LONGEST_WAIT  # seconds until there is something to do beside jobs

    def add(self, claimed: Claimed) -> None:
        """Count what a claim brought."""
        self.found += len(claimed.claims)
        if claimed.next_in is not None:
            self.look_again_in(claimed.next_in)

    def look_again_in(self, seconds: float) -> None:
        """There may be more in so many seconds."""
        self.next_in = seconds if self.next_in is None else min(self.next_in, seconds)

    @property
    def pause(self) -> float:
        """Seconds to wait before the next turn, unless the bell rings."""
        longest = 5.0 if self.trouble else min(LONGEST_WAIT, self.chores_in)
        return 0.0 if self.again else longest if self.next_in is None else min(self.next_in, longest)
