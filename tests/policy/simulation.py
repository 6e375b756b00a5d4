"""A day of one queue in virtual time: the real policies and the real settle step, a made-up target, no store."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from treppe.config import DAY
from treppe.job import Claim, Event, Grant, Kind, Outcome, Repeat, Report, Settlement
from treppe.policy.charge import next_seen
from treppe.policy.pace import Limits, Pacer
from treppe.settle import Rules, conclude

Target = Callable[["Job", float], tuple[float, Outcome]]
"""Called when a job starts, in the order of time: how long the call takes, and how it ends."""

NO_LIMITS: Final = Limits()
DEFAULT_RULES: Final = Rules()


@dataclass
class Job:
    seq: int
    due: float
    state: str = "waiting"
    token: int = 0
    claims: int = 0
    charged: int = 0
    seen: tuple[int, int, float] | None = None
    ended: float = 0.0
    error: str = ""


@dataclass
class Day:
    """One queue, one task, some runners in one process."""

    target: Target
    limits: Limits = NO_LIMITS
    rules: Rules = DEFAULT_RULES
    attempts: int = 5
    repeat: Repeat = Repeat.SAFE
    runners: int = 16
    seed: int = 1
    jobs: list[Job] = field(default_factory=list)
    holds: list[tuple[float, str]] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    flow: bytes | None = None

    def run(self, dues: list[float], until: float = 14 * DAY) -> Day:
        self._dice = random.Random(self.seed)
        self._pacer = Pacer({"queue": self.limits})
        self._ok = self._tried = self._running = 0
        self._reports: list[Report] = []
        self._events: list[tuple[float, int, Job, Claim, Outcome | None]] = []
        self.jobs = [Job(seq, due) for seq, due in enumerate(dues)]
        self._waiting = [(job.due, job.seq) for job in self.jobs]
        heapq.heapify(self._waiting)
        self._ready: list[tuple[float, int]] = []
        now, again = 0.0, 0.0
        while now < until and (self._waiting or self._ready or self._events):
            self._happen(now)
            again = self._claim(now)
            now = max(now, min(again, self._next_event()))
        return self

    def dead(self) -> list[Job]:
        return [job for job in self.jobs if job.state == "dead"]

    def _next_event(self) -> float:
        due = self._waiting[0][0] if self._waiting else float("inf")
        return min(self._events[0][0] if self._events else float("inf"), due)

    def _happen(self, now: float) -> None:
        while self._events and self._events[0][0] <= now:
            _, _, job, claim, outcome = heapq.heappop(self._events)
            if outcome is None:
                took, outcome = self.target(job, now)
                self.starts.append(now)
                heapq.heappush(self._events, (now + took, self._tick(), job, claim, outcome))
            else:
                self._settle(job, claim, outcome, now)

    def _settle(self, job: Job, claim: Claim, outcome: Outcome, now: float) -> None:
        settlement = conclude(claim, outcome, self.rules, now, self._dice.random())
        self._running -= 1
        if settlement.counts:
            self._ok, self._tried = self._ok + (outcome.kind is Kind.OK), self._tried + 1
        if settlement.report:
            self._reports.append(msgspec.structs.replace(settlement.report, at=now))
        self._write(job, settlement, now)

    def _write(self, job: Job, settlement: Settlement, now: float) -> None:
        job.charged += settlement.charged
        if settlement.counts and settlement.kind is not Kind.OK:
            job.seen = next_seen(job.seen, (self._ok, self._tried), settlement.charged, now)
        if settlement.event is Event.DEFER:
            job.state = "waiting"
            heapq.heappush(self._waiting, (now + settlement.delay, job.seq))
            return
        ends = {Event.FINISH: "done", Event.BURY: "dead", Event.DOUBT: "unclear"}
        job.state, job.ended, job.error = ends[settlement.event], now, settlement.error

    def _claim(self, now: float) -> float:
        """Claim as a store does: ask, look what is there, ask again; returns when to look again."""
        while self._waiting and self._waiting[0][0] <= now:
            heapq.heappush(self._ready, heapq.heappop(self._waiting))
        want = min(self.runners - self._running, len(self._ready))
        if want <= 0:
            return float("inf")
        reports, self._reports = self._reports, []
        ahead = 1.0 if self.repeat is Repeat.SAFE else 0.0
        grant = self._pacer.grant("queue", self.flow, reports, self._running, now, want, ahead)
        self._keep(grant, now)
        for i in range(grant.n):
            self._start(grant, i, now)
        if grant.n == want and grant.wait is None:
            return float("inf")
        return float("inf") if grant.wait is None else now + max(grant.wait, 1e-6)

    def _keep(self, grant: Grant, now: float) -> None:
        before, self.flow = self._held(), grant.flow
        after = self._held()
        if after and after != before:
            self.holds.append((now, after))

    def _held(self) -> str:
        return msgspec.msgpack.decode(self.flow).get("held", "") if self.flow else ""

    def _start(self, grant: Grant, i: int, now: float) -> None:
        _, seq = heapq.heappop(self._ready)
        job = self.jobs[seq]
        job.token, job.claims, job.state = job.token + 1, job.claims + (not grant.probe), "running"
        claim = Claim(
            seq, str(seq), job.token, 1, "task", "queue", b"", "", None, self.repeat, job.claims, job.charged,
            self.attempts, 0, job.due, now, job.due + 14 * DAY, None, probe=grant.probe, seen=job.seen,
            health=(self._ok, self._tried) if job.seen else None,
        )  # fmt: skip
        start = max(now, grant.starts[i]) if grant.starts else now
        self._running += 1
        heapq.heappush(self._events, (start, self._tick(), job, claim, None))

    def _tick(self) -> int:
        self._ticks = getattr(self, "_ticks", 0) + 1
        return self._ticks
