"""Oban for Python (https://oban.pro/docs/py), on psycopg 3."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from bench.environments import Needs
from bench.peers import AsyncQueue, Variant, chunks


class Peer(AsyncQueue):
    """One worker class in one queue."""

    needs = Needs(("oban==0.7.0", "psycopg[binary,pool]==3.3.9", "uvloop==0.23.0"), at_least=(3, 12))
    variants: ClassVar = {
        "limit_100": Variant(
            "Oban for Python", "queue limit 100, pool 4 to 20, uvloop; bulk of 1,000", most=20_000, grows_to=100_000
        )
    }
    open = "SELECT EXISTS (SELECT FROM oban_jobs WHERE state IN ('available', 'scheduled', 'executing', 'retryable'))"
    _oban: Any
    _worker: Any

    async def make(self) -> None:
        from oban.schema import install

        pool = await self._pool()
        await install(pool)
        await pool.close()

    async def enter(self) -> None:
        from oban import Oban

        self._declare()
        self._oban = Oban(pool=await self._pool())

    async def many(self, n: int, delay: float) -> None:
        later = {"scheduled_at": datetime.now(UTC) + timedelta(seconds=delay)} if delay else {}
        for size in chunks(n, 1000):
            await self._oban.enqueue_many([self._worker.new({"sent": 0.0}, **later) for _ in range(size)])

    async def one(self, sent: float) -> None:
        await self._oban.enqueue(self._worker.new({"sent": sent}))

    async def serve(self) -> None:
        from oban import Oban

        self._declare()
        async with Oban(pool=await self._pool(), queues={"bench": 100}):
            await asyncio.Event().wait()

    def _declare(self) -> None:
        from oban import worker

        run_job = self.run_job

        @worker(queue="bench")
        class Bench:
            async def process(self, job: Any) -> None:
                await run_job(job.args["sent"])

        self._worker = Bench

    async def _pool(self) -> Any:
        from psycopg_pool import AsyncConnectionPool

        pool = AsyncConnectionPool(conninfo=self.place, min_size=4, max_size=20, open=False)
        await pool.open()
        return pool
