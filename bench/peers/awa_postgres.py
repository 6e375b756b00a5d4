"""awa (https://github.com/hardbyte/awa): a queue in Rust with a Python side."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from bench.environments import Needs
from bench.peers import AsyncQueue, Variant, chunks


@dataclass
class Bench:
    """The job."""

    sent: float


class Peer(AsyncQueue):
    """One async task in one queue."""

    needs = Needs(("awa-pg==0.6.9", "uvloop==0.23.0"))
    variants: ClassVar = {
        "workers_1024": Variant("awa", "1,024 workers, one shard, bulk by COPY in 10,000, uvloop", most=100_000)
    }
    open = (
        "SELECT EXISTS (SELECT FROM awa.jobs WHERE state IN"
        " ('available', 'scheduled', 'running', 'retryable', 'waiting_external'))"
    )
    _client: Any

    async def make(self) -> None:
        import awa

        await awa.migrate(self.place)
        await self.enter()
        await self._client.install_queue_storage(schema="awa")

    async def enter(self) -> None:
        import awa

        self._client = awa.AsyncClient(self.place)

    async def many(self, n: int, delay: float) -> None:
        later = {"run_at": datetime.now(UTC) + timedelta(seconds=delay)} if delay else {}
        for size in chunks(n, 10_000):
            await self._client.enqueue_many_copy([Bench(0.0)] * size, queue="bench", **later)

    async def one(self, sent: float) -> None:
        await self._client.insert(Bench(sent), queue="bench")

    async def serve(self) -> None:
        await self.enter()

        @self._client.task(Bench, queue="bench")  # type: ignore[untyped-decorator]
        async def bench(job: Any) -> None:
            await self.run_job(job.args.sent)

        await self._client.start([("bench", 1024)])
        await asyncio.Event().wait()
