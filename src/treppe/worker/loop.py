"""One event loop for async functions, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable

from treppe.job import Kind, Outcome
from treppe.worker.crew import SHORT, Crew, Ended, Starts
from treppe.worker.handler import RELEASED, Run, run_in_loop

log = logging.getLogger("treppe.worker")

CLOSES_WITHIN = 10.0


class LoopCrew(Crew):
    """Async functions, up to ``size`` at once in one event loop with a thread of its own."""

    def __init__(self, size: int, ended: Ended, starts: Starts) -> None:
        super().__init__(size, ended, starts)
        self._tasks: dict[int, tuple[Run, asyncio.Task[None]]] = {}
        self._waiting: deque[Run] = deque()
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def on_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Await this in the loop before it ends."""
        self._closers.append(closer)

    def take(self, runs: list[Run]) -> None:
        super().take(runs)
        self._begin().call_soon_threadsafe(self._start, runs)

    def return_unstarted(self, queue: str | None = None) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._return_waiting, queue)

    def _replace(self, run: Run, begun: bool) -> None:
        self._begin().call_soon_threadsafe(self._cancel, run)

    def close(self) -> None:
        if self._loop is None or self._thread is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result(CLOSES_WITHIN)
        except Exception as error:  # a handler that blocks the loop, or a closer that fails: the process ends anyway
            log.warning("the event loop did not end in good order: %s %s", type(error).__name__, error)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1.0)
        if not self._thread.is_alive():
            self._loop.close()

    def _begin(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="treppe-loop", daemon=True)
            self._thread.start()
        return self._loop

    def _start(self, runs: list[Run]) -> None:
        self._waiting.extend(runs)
        while self._waiting and len(self._tasks) < self.size:
            run = self._waiting.popleft()
            self._tasks[id(run)] = (run, asyncio.get_running_loop().create_task(self._work(run)))

    async def _work(self, run: Run) -> None:
        try:
            while (pause := self._starts.still_to_wait(run)) > 0:  # noqa: ASYNC110 - time is what it waits for
                await asyncio.sleep(pause)
            if not run.begin():
                return
            outcome = await run_in_loop(run)
        except asyncio.CancelledError:
            outcome = Outcome(Kind.RELEASED, "cancelled", acted=False if run.started is None else None)
        finally:
            self._tasks.pop(id(run), None)
        if not run.abandoned:
            self._ended.add(run, outcome, more_ready=self._mean < SHORT and bool(self._tasks))
        if self._waiting:
            self._start([])

    def _cancel(self, run: Run) -> None:
        """End a run that was given up. Whether it obeys or not, its place is free."""
        if id(run) in self._tasks:
            self._tasks.pop(id(run))[1].cancel()
            self._start([])

    def _return_waiting(self, queue: str | None) -> None:
        for run in [run for run in self._waiting if queue in (None, run.claim.queue)]:
            self._waiting.remove(run)
            self._ended.add(run, RELEASED)
        for run, task in list(self._tasks.values()):
            if run.started is None and queue in (None, run.claim.queue) and not run.abandon():
                # Said here, not by the task: a task that has not made its first step ends without a word.
                self._tasks.pop(id(run))
                task.cancel()
                self._ended.add(run, RELEASED)
        self._start([])

    async def _finish(self) -> None:
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for closer in self._closers:
            await closer()
