"""Pace policies for tests: one without limits, one that says what it is told and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from treppe.job import Grant, Report


class Asked(NamedTuple):
    """The facts a store handed to one ``grant``."""

    queue: str
    flow: bytes | None
    reports: tuple[Report, ...]
    running: int
    now: float
    want: int
    ahead: float


Answer = Callable[[Asked], Grant]


class _AnsweringPace:
    """Turns the question of a store into one value."""

    def grant(
        self,
        queue: str,
        flow: bytes | None,
        reports: Sequence[Report],
        running: int,
        now: float,
        want: int,
        ahead: float,
    ) -> Grant:
        """See :meth:`treppe.store.protocol.Pace.grant`."""
        return self.answer(Asked(queue, flow, tuple(reports), running, now, want, ahead))

    def answer(self, asked: Asked) -> Grant:
        """What may start."""
        raise NotImplementedError


class FreePace(_AnsweringPace):
    """No queue has a limit of its own. A flow changed by hand is looked at all the same."""

    def limited(self, queue: str) -> bool:
        """Never."""
        return False

    def answer(self, asked: Asked) -> Grant:
        """All that is wanted."""
        return Grant(asked.want, asked.flow)


class ScriptedPace(_AnsweringPace):
    """Limits the queues named in *answers*; ``asked`` and ``granted`` keep every question and answer.

    >>> pace = ScriptedPace({"crm": lambda asked: Grant(min(asked.want, 2))})
    >>> pace.limited("crm"), pace.limited("mail")
    (True, False)
    >>> pace.grant("crm", None, (), running=0, now=0.0, want=5, ahead=1.0).n
    2
    >>> pace.asked[0].want
    5
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.asked: list[Asked] = []
        self.granted: list[Grant] = []

    def limited(self, queue: str) -> bool:
        """True for the queues in the script."""
        return queue in self.answers

    def answer(self, asked: Asked) -> Grant:
        """What the script says."""
        grant = self.answers[asked.queue](asked)
        self.asked.append(asked)
        self.granted.append(grant)
        return grant


def at_most(slots: int) -> Answer:
    """As many as wanted, but never more than *slots* in flight: the store has to keep the limit."""
    return lambda asked: Grant(asked.want, asked.flow, slots=slots)


def as_many_as_free(slots: int) -> Answer:
    """As many as there are free slots, as a policy that counts them would say."""
    return lambda asked: Grant(max(0, min(asked.want, slots - asked.running)), asked.flow, slots=slots)


def held_for(seconds: float) -> Answer:
    """Nothing for that many seconds."""
    return lambda asked: Grant(0, asked.flow, wait=seconds)


def counting(asked: Asked) -> Grant:
    """Everything; the flow counts the reports that were ever folded in."""
    folded = int(asked.flow or b"0") + sum(report.n for report in asked.reports)
    return Grant(asked.want, b"%d" % folded)


FREE = FreePace()
