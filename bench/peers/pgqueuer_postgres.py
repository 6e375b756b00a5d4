"""PgQueuer (https://pgqueuer.readthedocs.io), on asyncpg and uvloop."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from bench.environments import Needs
from bench.peers import AsyncQueue, Variant, chunks


class Peer(AsyncQueue):
    """One async entrypoint, run by its manager."""

    needs = Needs(("pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"))
    variants: ClassVar = {
        "batch_500": Variant("PgQueuer", "batch_size=500, max_concurrent_tasks=1000, asyncpg, uvloop; bulk of 1,000")
    }
    open = "SELECT EXISTS (SELECT FROM pgqueuer)"
    _queries: Any

    async def make(self) -> None:
        await self.enter()
        await self._queries.install()

    async def enter(self) -> None:
        import asyncpg
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        self._queries = Queries(AsyncpgDriver(await asyncpg.connect(self.place)))

    async def many(self, n: int, delay: float) -> None:
        later = timedelta(seconds=delay) if delay else None
        for size in chunks(n, 1000):
            await self._queries.enqueue(["bench"] * size, [b"0.0"] * size, [0] * size, [later] * size)

    async def one(self, sent: float) -> None:
        await self._queries.enqueue("bench", str(sent).encode())

    async def serve(self) -> None:
        import asyncpg
        from pgqueuer import PgQueuer

        queue = PgQueuer.from_asyncpg_pool(await asyncpg.create_pool(self.place, min_size=2, max_size=10))

        @queue.entrypoint("bench")  # type: ignore[untyped-decorator]
        async def bench(job: Any) -> None:
            await self.run_job(float(job.payload))

        await queue.run(batch_size=500, max_concurrent_tasks=1000)
