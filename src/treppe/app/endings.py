"""How a task says how it ended, other than by returning.

Each is an exception; raise it. What a task returns is its result; any other exception is a failure.
"""

from __future__ import annotations

from treppe.job import Kind, Outcome


class Ending(Exception):
    """The root of the five. ``after`` is the least number of seconds until the next try."""

    kind: Kind = Kind.FAILED
    acted: bool | None = False

    def __init__(self, why: str = "", *, after: float | None = None) -> None:
        self.why, self.after = why, after
        super().__init__(why)

    def outcome(self) -> Outcome:
        """The value for the settle."""
        return Outcome(self.kind, self.why or type(self).__name__.lower(), after=self.after, acted=self.acted)


class Retry(Ending):
    """It failed and it is this job's own fault: charged, and tried again.

    >>> Retry("the template is broken", after=60).outcome().kind
    <Kind.CHARGED: 'charged'>
    """

    kind = Kind.CHARGED


class Wait(Ending):
    """Not yet: try again later. Nobody's fault, never charged."""

    kind = Kind.SNOOZED


class Down(Ending):
    """The other side is down: never charged; the queue is held and probed."""

    kind = Kind.DOWN


class Unclear(Ending):
    """Nobody knows whether it happened: a human decides."""

    kind = Kind.UNCLEAR
    acted = None


class Bury(Ending):
    """It can never work: dead at once, and a human is told."""

    kind = Kind.REFUSED
