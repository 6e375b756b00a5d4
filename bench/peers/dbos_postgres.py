"""DBOS (https://docs.dbos.dev): durable workflows, on a queue."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, ClassVar

from bench.environments import Needs
from bench.peers import Queue, Variant


class Peer(Queue):
    """One workflow. DBOS has no bulk enqueue; a restart with the same executor id recovers what was running."""

    needs = Needs(("dbos==3.4.0", "psycopg[binary]==3.3.9"))
    variants: ClassVar = {
        "poll_50_ms": Variant(
            "DBOS",
            "worker_concurrency=100, polled every 50 ms (default 1 s); no bulk enqueue",
            most=5_000,
            grows_to=20_000,
        )
    }
    open = "SELECT EXISTS (SELECT FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED'))"
    _bench: Any
    _queue: Any

    def begin(self) -> None:
        from dbos import DBOS

        logging.getLogger("dbos").setLevel(logging.WARNING)
        config = {"name": "bench", "system_database_url": self.place, "log_level": "WARNING", "executor_id": "bench"}
        DBOS(config=config)

        @DBOS.workflow(name="bench")  # type: ignore[untyped-decorator]
        def bench(sent: float) -> None:
            time.sleep(self.job(sent))

        self._bench = bench

    def prepare(self) -> None:
        self._launch(())

    def connect(self) -> None:
        self._launch(())

    def fill(self, n: int, delay: float = 0.0) -> None:
        from dbos import SetEnqueueOptions

        for _ in range(n):
            if delay:
                with SetEnqueueOptions(delay_seconds=delay):
                    self._queue.enqueue(self._bench, 0.0)
            else:
                self._queue.enqueue(self._bench, 0.0)

    def put(self, sent: float) -> None:
        self._queue.enqueue(self._bench, sent)

    def work(self) -> None:
        self._launch(("bench",))
        threading.Event().wait()

    def _launch(self, listen_to: tuple[str, ...]) -> None:
        from dbos import DBOS

        DBOS.listen_queues(list(listen_to))
        DBOS.launch()
        self._queue = DBOS.register_queue("bench", worker_concurrency=100, polling_interval_sec=0.05)
