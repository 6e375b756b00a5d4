"""Rate and concurrency (I19): over all workers, by what the store granted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tests.sim.history import Claimed
from tests.sim.leases import Blame, Leases
from tests.sim.life import Life
from treppe.config import Rate
from treppe.job import Claim, State
from treppe.policy.pace import Limits

TINY = 1e-4


class Pacing:
    """Grants of each queue in their order."""

    def __init__(self, limits: Mapping[str, Limits], leases: Leases, blame: Blame) -> None:
        self._limits, self._leases, self._blame = limits, leases, blame
        self._starts: dict[str, list[float]] = defaultdict(list)
        self._not_before: dict[tuple[int, int], float] = {}

    def stepped(self) -> None:
        """The clock was set: what was granted before is no measure for what comes."""
        self._starts.clear()

    def claimed(self, claim: Claim, entry: Claimed, lives: Iterable[Life], peak: float) -> None:
        limits = self._limits.get(claim.queue)
        if limits is None:
            return
        if limits.concurrent is not None:
            self._count_those_in_flight(claim, limits.concurrent, lives, peak)
        if limits.rate is not None:
            self._look_at_window(claim, entry.at, limits.rate)
            self._not_before[claim.seq, claim.token] = entry.on + max(0.0, claim.start_at - entry.at)

    def began(self, claim: Claim, on: float) -> None:
        early = self._not_before.get((claim.seq, claim.token), 0.0) - on
        if early > TINY:
            self._blame("I19", f"{claim.id} was started {early:.3f} s before its grant")

    def _look_at_window(self, claim: Claim, at: float, rate: Rate) -> None:
        starts = self._starts[claim.queue]
        start = max(claim.start_at, at)
        starts.append(start)
        taken = start - starts[-1 - rate.n] if len(starts) > rate.n else rate.per
        if taken < rate.per - TINY:
            self._blame(
                "I19", f"{claim.queue}: {rate.n + 1} starts in {taken:.3f} s, allowed are {rate.n} in {rate.per} s"
            )

    def _count_those_in_flight(self, claim: Claim, most: int, lives: Iterable[Life], peak: float) -> None:
        flying = [life.job.id for life in lives if life.job.queue == claim.queue and self._is_in_flight(life, peak)]
        if len(flying) > most:
            self._blame("I19", f"queue {claim.queue}: {len(flying)} in flight, allowed are {most}: {flying}")

    def _is_in_flight(self, life: Life, peak: float) -> bool:
        if life.running:
            return not self._leases.may_be_gone(life.worker)
        return life.state is State.HANDED_OVER and peak < life.confirm_by
