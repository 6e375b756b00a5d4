"""Procrastinate (https://procrastinate.readthedocs.io), on psycopg 3."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from bench.environments import Needs
from bench.peers import AsyncQueue, Variant, chunks


class Peer(AsyncQueue):
    """One async task. A killed worker's jobs stay "doing" until a periodic task of the user's own retries them."""

    needs = Needs(("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.9", "uvloop==0.23.0"))
    variants: ClassVar = {
        "concurrency_20": Variant(
            "Procrastinate", "concurrency=20, PsycopgConnector, uvloop; bulk of 1,000", most=10_000, grows_to=200_000
        )
    }
    open = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"
    _task: Any

    def begin(self) -> None:
        super().begin()
        from procrastinate import App, PsycopgConnector

        self._app = App(connector=PsycopgConnector(conninfo=self.place))

        @self._app.task(name="bench", queue="bench")  # type: ignore[untyped-decorator]
        async def bench(sent: float) -> None:
            await self.run_job(sent)

        self._task = bench

    async def make(self) -> None:
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()

    async def enter(self) -> None:
        await self._app.open_async()

    async def many(self, n: int, delay: float) -> None:
        at = datetime.now(UTC) + timedelta(seconds=delay) if delay else None
        for size in chunks(n, 1000):
            await self._task.configure(schedule_at=at).batch_defer_async(*({"sent": 0.0} for _ in range(size)))

    async def one(self, sent: float) -> None:
        await self._task.defer_async(sent=sent)

    async def serve(self) -> None:
        async with self._app.open_async():
            await self._app.run_worker_async(queues=["bench"], concurrency=20)
