"""What the door counts of itself, for the board and for metrics. Kept in memory; a restart begins at zero."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

import msgspec

WINDOW: Final = 4096
"""So many of the latest answers are looked at for the answer times."""

WINDOW_SECONDS: Final = 300.0
"""And none that is older than this."""


class SourceFigures(msgspec.Struct):
    """One source's counts since the start. ``refused`` and ``notes`` count by reason."""

    accepted: int = 0  # new events, the filtered ones among them
    duplicates: int = 0
    conflicts: int = 0
    filtered: int = 0
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    notes: Counter[str] = msgspec.field(default_factory=Counter)


class DoorFigures:
    """All sources, and how long answers took. Written by the door's loop; may be read from any thread.

    >>> figures = DoorFigures(clock=lambda: 100.0)
    >>> figures.source("shop").accepted += 1
    >>> for seconds in (0.002, 0.004, 0.100): figures.answered(seconds)
    >>> figures.answer_time(0.5), figures.answer_time(0.99)
    (0.004, 0.1)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.sources: dict[str, SourceFigures] = {}
        self.refused: Counter[str] = Counter()  # what named no source of ours
        self._clock = clock
        self._answers: deque[tuple[float, float]] = deque(maxlen=WINDOW)

    def source(self, name: str) -> SourceFigures:
        """The counts of one source; call it only with names from the settings."""
        found = self.sources.get(name)
        if found is None:
            found = self.sources[name] = SourceFigures()
        return found

    def answered(self, seconds: float) -> None:
        """One more accepted webhook, answered after so many seconds."""
        self._answers.append((self._clock(), seconds))

    def answer_time(self, share: float) -> float | None:
        """Seconds within which that share of the latest webhooks was answered; None when there were none lately."""
        since = self._clock() - WINDOW_SECONDS
        times = sorted(seconds for at, seconds in self._answers.copy() if at >= since)
        return times[min(int(share * len(times)), len(times) - 1)] if times else None
