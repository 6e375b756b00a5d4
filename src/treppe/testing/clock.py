"""A clock that stands still until it is told otherwise, so that no test ever sleeps."""

from __future__ import annotations


class ManualClock:
    """The time as a value: call it to read it, ``advance`` it to let time pass. Unix seconds.

    Stores take it as their ``clock``, and so does everything else in Treppe that knows the time.

    >>> clock = ManualClock(1000.0)
    >>> clock.advance(30)
    1030.0
    >>> clock()
    1030.0
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = float(now)

    def __call__(self) -> float:
        """The time it shows."""
        return self._now

    def advance(self, seconds: float) -> float:
        """Let that many seconds pass; returns the new time. Raises ``ValueError`` below zero.

        >>> ManualClock().advance(-1)
        Traceback (most recent call last):
        ValueError: time cannot pass backwards (-1 seconds); use set_to() to turn a clock back
        """
        if seconds < 0:
            raise ValueError(f"time cannot pass backwards ({seconds} seconds); use set_to() to turn a clock back")
        self._now += seconds
        return self._now

    def set_to(self, now: float) -> None:
        """Turn the clock by hand, also back, as a wrong clock that is put right.

        >>> clock = ManualClock(1000.0)
        >>> clock.set_to(900)
        >>> clock()
        900.0
        """
        self._now = float(now)

    def __repr__(self) -> str:
        return f"ManualClock({self._now})"
