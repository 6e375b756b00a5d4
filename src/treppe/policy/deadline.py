"""How much of the promise is used up. A deadline is measured and told; it kills nothing."""

from __future__ import annotations

from typing import Literal

Late = Literal[0, 50, 100]
"""Per cent of the promise that are gone, as people are told: not late, half gone, broken."""


def used(due_at: float, deadline_at: float, now: float) -> float:
    """The part of the promise that is gone: 0.0 before the job is due, 1.0 at the deadline, more after it.

    >>> used(due_at=100.0, deadline_at=200.0, now=150.0), used(100.0, 200.0, 50.0), used(100.0, 200.0, 300.0)
    (0.5, 0.0, 2.0)
    >>> used(due_at=100.0, deadline_at=100.0, now=100.0)
    1.0
    """
    promised = deadline_at - due_at
    if promised <= 0:
        return 1.0 if now >= deadline_at else 0.0
    return max(0.0, (now - due_at) / promised)


def late(due_at: float, deadline_at: float | None, now: float) -> Late:
    """The level people are told of; jobs without a promise are never late.

    >>> [late(100.0, 200.0, now) for now in (149.9, 150.0, 200.0)], late(100.0, None, 9e9)
    ([0, 50, 100], 0)
    """
    part = 0.0 if deadline_at is None else used(due_at, deadline_at, now)
    return 100 if part >= 1.0 else 50 if part >= 0.5 else 0


def left(deadline_at: float, now: float) -> float:
    """Seconds until the promise is broken; negative once it is.

    >>> left(deadline_at=200.0, now=150.0), left(200.0, 260.0)
    (50.0, -60.0)
    """
    return deadline_at - now
