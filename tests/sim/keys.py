"""One at a time per order key, and in order (I17)."""

from __future__ import annotations

from collections import defaultdict

from tests.sim.leases import Blame, Leases
from tests.sim.life import Life
from treppe.job import State


class Keys:
    """Who stands in which line, and who has its turn."""

    def __init__(self, leases: Leases, blame: Blame) -> None:
        self._leases, self._blame = leases, blame
        self._lines: dict[tuple[str, str], list[Life]] = defaultdict(list)
        self._turn: dict[tuple[str, str], Life] = {}

    def join(self, life: Life) -> None:
        if life.job.key is not None:
            self._lines[life.job.queue, life.job.key].append(life)

    def claimed(self, life: Life, at: float, peak: float) -> None:
        if life.job.key is None:
            return
        line = life.job.queue, life.job.key
        holder = self._turn.get(line)
        if holder is not None and holder is not life and not self._may_have_let_go(holder, peak):
            state = holder.state or "on its way"
            self._blame("I17", f"{life.job.id} was claimed; {holder.job.id} of the same key is {state}")
        if holder is not life and not life.revived:  # it may have died as the head of its line, and kept its turn
            self._look_for_earlier(life, line, at, peak)
        self._turn[line] = life

    def ended(self, life: Life) -> None:
        if life.job.key is None:
            return
        line = life.job.queue, life.job.key
        if life.revived and life.state is None and life.job.skip_dead and self._turn.get(line) is life:
            del self._turn[line]  # it was dead, and a dead job like this lets its key go
        over = life.state in (State.DONE, State.CANCELLED) or (life.state is State.DEAD and life.job.skip_dead)
        if over and self._turn.get(line) is life:
            del self._turn[line]
        if life.state in (State.DONE, State.CANCELLED, State.DEAD) and life in self._lines[line]:
            self._lines[line].remove(life)
        elif life.state is None and life not in self._lines[line]:
            self._lines[line].append(life)  # revived

    def _look_for_earlier(self, life: Life, line: tuple[str, str], at: float, peak: float) -> None:
        place = life.due_at, life.seq
        for other in self._lines[line]:
            earlier = (other.due_at, other.seq) < place and other.due_at <= at
            if earlier and other is not life and not self._may_have_ended(other, peak):
                self._blame("I17", f"{life.job.id} was claimed before {other.job.id}, which came earlier in its line")
                return

    def _may_have_let_go(self, life: Life, peak: float) -> bool:
        return self._may_have_ended(life, peak) and (life.job.skip_dead or life.cancel)

    def _may_have_ended(self, life: Life, peak: float) -> bool:
        """By upkeep: expired, cancelled after a lapse, or dead of its crashes."""
        lapsed = life.running and self._leases.may_be_gone(life.worker)
        return peak >= life.expires_at or (lapsed and (life.cancel or life.suspect))
