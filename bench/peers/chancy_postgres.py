"""Chancy (https://tkte.ch/chancy), on psycopg 3. It settles in batches, once a second."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from bench.environments import Needs
from bench.peers import AsyncQueue, Queue, Variant, chunks

_running: Queue


class Peer(AsyncQueue):
    """One async job, found by its import path as Chancy does."""

    needs = Needs(("chancy==0.26.0", "psycopg[binary,pool]==3.3.9", "uvloop==0.23.0"))
    variants: ClassVar = {
        "async_500": Variant(
            "Chancy",
            "AsyncExecutor, concurrency=500, eager_polling, uvloop, default plugins; bulk of 1,000",
            most=20_000,
            grows_to=100_000,
        )
    }
    open = "SELECT EXISTS (SELECT FROM chancy_jobs WHERE state NOT IN ('succeeded', 'failed'))"

    def begin(self) -> None:
        super().begin()
        from chancy import Chancy, job

        global _running  # noqa: PLW0603 (Chancy imports what it runs)
        _running = self
        log = logging.getLogger("chancy")
        log.setLevel(logging.WARNING)
        self._chancy = Chancy(self.place, log=log)
        self._job: Any = job(queue="bench")(bench)

    async def make(self) -> None:
        from chancy import Chancy, Queue

        async with self._chancy:
            await self._chancy.migrate()
            fetching = {"concurrency": 500, "polling_interval": 1, "eager_polling": True}
            await self._chancy.declare(Queue("bench", executor=Chancy.Executor.Async, **fetching))

    async def enter(self) -> None:
        await self._chancy.pool.open()

    async def many(self, n: int, delay: float) -> None:
        at = {"scheduled_at": datetime.now(UTC) + timedelta(seconds=delay)} if delay else {}
        for size in chunks(n, 1000):
            jobs = [self._job.job.with_kwargs(sent=0.0) for _ in range(size)]
            if at:
                jobs = [job.with_scheduled_at(at["scheduled_at"]) for job in jobs]
            async for _ in self._chancy.push_many(jobs):
                pass

    async def one(self, sent: float) -> None:
        await self._chancy.push(self._job.job.with_kwargs(sent=sent))

    async def serve(self) -> None:
        from chancy import Worker

        async with self._chancy, Worker(self._chancy) as worker:
            await worker.wait_for_shutdown()


async def bench(*, sent: float) -> None:
    """The job."""
    await _running.run_job(sent)  # type: ignore[attr-defined]
