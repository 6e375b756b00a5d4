"""How long a job waits before its next try.

Full jitter, because jobs that failed together must not come back together
(https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/), but with a floor: full jitter alone
may say "at once", and a target in trouble is the last one to be asked again at once. The floor is a tenth of the
base, so it follows a backoff of half a second as well as one of a minute.
"""

from __future__ import annotations

from typing import Final

from treppe.config import Backoff

LONGEST_ASKED: Final = 86400.0
"""A remote side may ask for at most a day (seconds); some send Retry-After in milliseconds, or a year."""

SHORT: Final = Backoff(base=5.0, factor=2.0, cap=300.0)
"""For what is nobody's fault. The queue is held meanwhile, so the job itself only has to stay out of the way."""


def backoff(rule: Backoff, failures: int, roll: float, after: float | None = None) -> float:
    """Seconds to wait after the failure that *failures* others preceded; *roll* is in [0, 1).

    *after* is what the remote side asked for (Retry-After, seconds). It wins over the rule, but is never taken
    below the rule's floor nor above a day, and jitter only adds to it.

    >>> [backoff(Backoff(jitter=False), n, roll=0.5) for n in (0, 1, 2, 9)]
    [10.0, 30.0, 90.0, 7200.0]
    >>> backoff(Backoff(), 2, roll=0.0), backoff(Backoff(), 2, roll=0.5)
    (1.0, 45.5)
    >>> backoff(Backoff(), 9, roll=0.5, after=60.0), backoff(Backoff(), 0, roll=0.0, after=0.0)
    (63.0, 1.0)
    """
    spread = roll if rule.jitter else 1.0
    if after is None:
        step = _step(rule, failures)
        low = min(_floor(rule), step)
        return min(low + spread * (step - low), step)
    asked = max(_floor(rule), after)
    return min(asked * (1 + roll / 10) if rule.jitter else asked, LONGEST_ASKED)


def snooze(after: float) -> float:
    """Seconds a handler's own wish to wait is granted for: never negative, never above ten years.

    >>> snooze(-5.0), snooze(90.0), snooze(float("nan"))
    (0.0, 90.0, 0.0)
    """
    return min(max(0.0, after), 3650 * 86400.0)


def _floor(rule: Backoff) -> float:
    return min(rule.base / 10, rule.cap)


def _step(rule: Backoff, failures: int) -> float:
    try:
        return min(rule.base * rule.factor**failures, rule.cap)
    except OverflowError:
        return rule.cap
