"""BullMQ for Python (https://docs.bullmq.io/python), on its PostgreSQL backend."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from bench.environments import Needs
from bench.peers import AsyncQueue, Variant, chunks


class Peer(AsyncQueue):
    """One queue and its worker."""

    needs = Needs(("bullmq[postgres]==3.4.4", "uvloop==0.23.0"))
    variants: ClassVar = {
        "concurrency_100": Variant(
            "BullMQ for Python",
            "backend postgres, concurrency=100, uvloop; bulk of 1,000",
            most=10_000,
            grows_to=200_000,
        )
    }
    open = "SELECT EXISTS (SELECT FROM bullmq.job WHERE finished_at_ms IS NULL)"
    _queue: Any

    async def make(self) -> None:
        await self.enter()

    async def enter(self) -> None:
        from bullmq import Queue

        self._queue = Queue("bench", self._options())
        await self._queue.getJobCounts("waiting")

    async def many(self, n: int, delay: float) -> None:
        options = {"delay": int(delay * 1000)} if delay else {}
        for size in chunks(n, 1000):
            await self._queue.addBulk([{"name": "bench", "data": {"sent": 0.0}, "opts": options}] * size)

    async def one(self, sent: float) -> None:
        await self._queue.add("bench", {"sent": sent})

    async def serve(self) -> None:
        from bullmq import Worker

        async def bench(job: Any, token: str) -> None:
            await self.run_job(job.data["sent"])

        self._worker = Worker("bench", bench, self._options() | {"concurrency": 100})
        await asyncio.Event().wait()

    def _options(self) -> dict[str, Any]:
        return {"backend": "postgres", "connection": self.place}
