"""A destination in virtual time. It answers as badly as it is told; what it really did goes into the history.

Its answers go through the real ``delivery.verdict``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from tests.sim import history
from tests.sim.kernel import Kernel
from treppe.config import Destination
from treppe.delivery.verdict import Answer, NoAnswer, Reply, judge
from treppe.job import Claim, Outcome

PATIENCE = 6.0
"""Seconds after which the caller gives a call up."""


class Mood(StrEnum):
    WELL = "well"
    DOWN = "refuses connections"
    FAILING = "answers 500 to everything"
    BROWN = "fails half of the calls"
    HANGING = "does not answer"
    THROTTLING = "answers 429 to everything"
    LOGIN = "answers 401 to everything"


class Target:
    """One remote API. ``most`` calls in any ``per`` seconds are taken, more are answered with 429."""

    def __init__(
        self, name: str, kernel: Kernel, entries: list[Any], most: int | None = None, per: float = 1.0
    ) -> None:
        self.name = name
        self.mood = Mood.WELL
        self.broken: set[str] = set()  # jobs that it always fails with 500
        self.refused: set[str] = set()  # … and with 422
        self.hand_over: set[str] = set()  # … and for which a 2xx is not the end
        self.on_hand_over: Callable[[Claim], object] = lambda claim: None
        self.calls = 0
        self._destination = Destination(name, f"https://{name}.example/in")
        self._kernel, self._entries = kernel, entries
        self._most, self._per = most, per
        self._taken: deque[float] = deque()

    def heal(self) -> None:
        """From now on it answers well, and works at any pace; what it refuses it still refuses."""
        self.mood, self._most = Mood.WELL, None
        self.broken.clear()

    def call(self, claim: Claim) -> Outcome:
        """What the built-in handler would end with."""
        self.calls += 1
        self._kernel.sleep(self._way())
        reply = self._reply(claim)
        self._kernel.sleep(self._way())
        outcome = judge(reply, self._destination, 0.0)
        if outcome.acted and claim.id in self.hand_over:
            self.on_hand_over(claim)
            return Outcome(outcome.kind, acted=True, handed_over=True)
        return outcome

    def _way(self) -> float:
        roll = self._kernel.random.random()
        return 0.002 + roll * 0.05 if roll < 0.95 else roll * 2.0

    def _reply(self, claim: Claim) -> Reply:
        random, mood = self._kernel.random.random(), self.mood
        if mood is Mood.DOWN:
            return NoAnswer("connection refused", self._destination.url, left=False)
        if mood is Mood.THROTTLING:
            return self._answer(claim, 429, False, (("Retry-After", "3"),))
        if mood is Mood.LOGIN:
            return self._answer(claim, 401, False)
        if mood is Mood.FAILING or (mood is Mood.BROWN and random < 0.5):
            return self._answer(claim, 500, random < 0.1)
        if mood is Mood.HANGING or random > 0.99:
            self._did(claim, random > 0.995)
            self._kernel.sleep(PATIENCE)
            return NoAnswer("no answer", self._destination.url, left=True)
        return self._well(claim)

    def _well(self, claim: Claim) -> Reply:
        if claim.id in self.refused:
            return self._answer(claim, 422, False)
        if claim.id in self.broken:
            return self._answer(claim, 500, False)
        if not self._has_room():
            return self._answer(claim, 429, False, (("Retry-After", "2"),))
        return self._answer(claim, 200, True)

    def _has_room(self) -> bool:
        now = self._kernel.now
        while self._taken and self._taken[0] <= now - self._per:
            self._taken.popleft()
        if self._most is not None and len(self._taken) >= self._most:
            return False
        self._taken.append(now)
        return True

    def _answer(self, claim: Claim, status: int, acted: bool, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
        self._did(claim, acted)
        return Answer(status, self._destination.url, headers)

    def _did(self, claim: Claim, acted: bool) -> None:
        self._entries.append(history.Called(self._kernel.now, claim, acted))
