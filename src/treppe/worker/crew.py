"""The hands of a worker, as far as all kinds are alike: how many jobs they hold, and how long one takes.

A crew takes claimed jobs and rings the bell when one has ended. It never talks to the store.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from treppe.job import Outcome
from treppe.store.bell import Bell
from treppe.worker.handler import Run

PREFETCH_FOR = 0.05  # seconds of work that may lie ready beside the running jobs
MAX_PREFETCH = 500
LINGER = 0.002
SHORT = 0.001  # mean seconds of a job below which one thread works off several in a row


class Ended:
    """Where ended runs lie until the engine collects them; ringing the bell wakes the engine.

    While more short jobs lie ready the bell waits up to ``LINGER``: an engine that wakes for each of them would
    fight their thread for the interpreter's lock at every row of its transaction.
    """

    def __init__(self, bell: Bell) -> None:
        self._runs: deque[Run] = deque()
        self._bell = bell
        self._ring_at = 0.0

    def add(self, run: Run, outcome: Outcome, more_ready: bool = False) -> None:
        """Called by whoever ran the job."""
        run.outcome = outcome
        run.ended = now = time.monotonic()
        self._runs.append(run)
        if not more_ready or now >= self._ring_at:
            self._ring_at = now + LINGER
            self._bell.ring()

    def collect(self) -> list[Run]:
        """Everything that has ended so far."""
        found = []
        while self._runs:
            found.append(self._runs.popleft())
        self._ring_at = time.monotonic() + LINGER
        return found


class Starts:
    """When paced jobs may start: a start that comes late shifts those granted after it, so none of them bunch up."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._lock = threading.Lock()

    def still_to_wait(self, run: Run) -> float:
        """Seconds this job has to wait yet; at 0 it counts as started."""
        if not run.claim.start_at:
            return 0.0
        now = time.monotonic()
        with self._lock:
            start = max(run.not_before, self._last.get(run.claim.queue, 0.0) + run.gap)
            if start <= now:
                self._last[run.claim.queue] = now
            return max(0.0, start - now)


class Crew:
    """What both kinds of hands share: how many jobs they hold, and how long one takes."""

    def __init__(self, size: int, ended: Ended, starts: Starts) -> None:
        self.size = size
        self._starts = starts
        self.held = 0
        self._ended = ended
        self._mean = 1.0  # seconds a job takes, moving average

    def free(self) -> int:
        """Jobs that could start right now."""
        return max(0, self.size - self.held)

    def room(self) -> int:
        """Jobs worth claiming: the free hands, and for short jobs a few that lie ready."""
        ready = min(MAX_PREFETCH, int(self.size * PREFETCH_FOR / max(self._mean, 1e-6)))
        return max(0, self.size + ready - self.held)

    def take(self, runs: list[Run]) -> None:
        """Start these jobs as hands become free."""
        self.held += len(runs)
        now = time.monotonic()
        for run in runs:
            run.taken = now

    def let_go(self, runs: Iterable[Run]) -> None:
        """The engine has seen the end of these jobs."""
        for run in runs:
            self.held -= 1
            if run.started is not None:
                self._mean += 0.05 * (run.ended - run.started - self._mean)

    def return_unstarted(self, queue: str | None = None) -> None:
        """Give back what was never started, of one queue or of all."""

    def give_up(self, run: Run, reason: Callable[[bool], Outcome]) -> None:
        """End a run from outside; *reason* makes the outcome of whether it had begun."""
        begun = run.abandon()
        self._ended.add(run, reason(begun))
        self._replace(run, begun)

    def _replace(self, run: Run, begun: bool) -> None:
        """The hand that held it is lost, if it had begun."""
        raise NotImplementedError

    def close(self) -> None:
        """End the hands."""
