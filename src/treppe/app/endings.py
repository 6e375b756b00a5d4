"""How a task says how it ended, other than by returning.

Each is an exception; raise it. What a task returns is its result; any other exception is a failure.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from treppe.app.durations import Duration, seconds
from treppe.job import Kind


class Ending(Exception):
    """The root of the five. ``why`` is told to people; ``after`` is the least time until the next try.

    *after* is in seconds, or a text such as ``"15m"``; one that has passed already counts as now.
    """

    kind: ClassVar[Kind]
    acted: ClassVar[bool | None] = False

    def __init__(self, why: object = "", *, after: Duration | None = None) -> None:
        self.why = why
        self.after = None if after is None else _still_to_wait(after)
        super().__init__(why)


class Retry(Ending):
    """It failed and it is this job's own fault: charged, and tried again.

    >>> Retry("the template is broken", after="1m").after
    60.0
    """

    kind = Kind.CHARGED


class Wait(Ending):
    """Not yet: try again later. Nobody's fault, never charged; after 500 tries it is given up all the same.

    >>> raise Wait("the export is still being made", after=30)
    Traceback (most recent call last):
    treppe.app.endings.Wait: the export is still being made
    """

    kind = Kind.SNOOZED


class Down(Ending):
    """The other side is down: never charged; the queue is held and probed.

    It says that nothing happened over there, so the job may be repeated whatever its ``repeat`` is.
    """

    kind = Kind.DOWN


class Unclear(Ending):
    """Nobody knows whether it happened: a human decides."""

    kind = Kind.UNCLEAR
    acted = None


class Bury(Ending):
    """It can never work: dead at once, and a human is told."""

    kind = Kind.REFUSED


def _still_to_wait(after: Duration) -> float:
    if isinstance(after, timedelta):
        after = after.total_seconds()
    return seconds(after if isinstance(after, str) else max(0.0, after), "after")
