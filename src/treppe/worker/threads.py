"""Threads for plain functions."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from queue import SimpleQueue

from treppe.worker.crew import PREFETCH_FOR, SHORT, Crew, Ended, Starts
from treppe.worker.handler import RELEASED, Run, run_plainly

STALE = 1.0


class ThreadCrew(Crew):
    """Plain functions, each in one of ``size`` threads. A thread that hangs is abandoned and replaced.

    Ready jobs lie in one line; a thread that takes a job wakes the next thread if more lie ready, unless jobs
    are so short that handing them over would cost more than doing them.
    """

    def __init__(self, size: int, ended: Ended, starts: Starts) -> None:
        super().__init__(size, ended, starts)
        self._ready: deque[Run] = deque()
        self._wake: SimpleQueue[bool] = SimpleQueue()  # False ends a thread
        self._hired = 0

    def take(self, runs: list[Run]) -> None:
        super().take(runs)
        while self._hired < min(self.size, self.held):
            self._hire()
        self._ready.extend(runs)
        self._wake.put(True)

    def nudge(self) -> bool:
        """Wake one more thread if jobs lie ready; True if any do."""
        if self._ready:
            self._wake.put(True)
        return bool(self._ready)

    def return_unstarted(self, queue: str | None = None) -> None:
        self._return(run for run in list(self._ready) if queue in (None, run.claim.queue))

    def return_stale(self) -> None:
        """Give back what has lain ready for long. The jobs before it take longer than jobs took so far, and until they
        prove otherwise nothing is taken in store for them again."""
        stale = time.monotonic() - STALE
        with suppress(IndexError):  # the threads took the last one
            if self._ready[0].taken < stale:
                self._mean = max(self._mean, STALE, 2 * self.size * PREFETCH_FOR)
                self._return(run for run in list(self._ready) if run.taken < stale)

    def _return(self, runs: Iterable[Run]) -> None:
        for run in runs:
            with suppress(ValueError):  # a thread was faster
                self._ready.remove(run)
                self._ended.add(run, RELEASED)

    def _replace(self, run: Run, begun: bool) -> None:
        if begun:
            self._hire()

    def close(self) -> None:
        for _ in range(self._hired):
            self._wake.put(False)

    def _hire(self) -> None:
        self._hired += 1
        threading.Thread(target=self._work, name=f"treppe-job-{self._hired}", daemon=True).start()

    def _work(self) -> None:
        while self._wake.get():
            try:
                while True:
                    self._run_one(self._ready.popleft())
            except IndexError:
                continue
            except _AbandonedError:
                return

    def _run_one(self, run: Run) -> None:
        if self._ready and self._mean > SHORT:
            self._wake.put(True)
        while (pause := self._starts.still_to_wait(run)) > 0:
            time.sleep(pause)
        if not run.begin():
            return
        outcome = run_plainly(run)
        if run.abandoned:
            raise _AbandonedError
        self._ended.add(run, outcome, more_ready=bool(self._ready))
        if run.abandoned:  # given up at this very moment: somebody else was hired
            raise _AbandonedError


class _AbandonedError(Exception):
    """The engine has given this thread up and hired another."""
