"""litequeue on SQLite (https://github.com/litements/litequeue). It has no worker: pop, run, done is its use."""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

import litequeue  # type: ignore[import-untyped]

from bench.peers import Queue, Variant

_BACKLOG = "its pop sorts the whole backlog, so it gets a short one"


class Peer(Queue):
    """One LiteQueue; an empty one is looked at again after 10 ms."""

    packages = ("litequeue",)
    variants: ClassVar = {
        "default": Variant(
            "litequeue, defaults", f"WAL, synchronous=NORMAL, not durable; {_BACKLOG}", durable=False, most=1000
        ),
        "full": Variant("litequeue, FULL", f"WAL, synchronous=FULL; {_BACKLOG}", durable=True, most=1000),
    }

    def begin(self) -> None:
        self._queue = self._open()

    def fill(self, n: int, delay: float = 0.0) -> None:
        if delay:
            raise NotImplementedError("litequeue schedules nothing")
        with self._queue.transaction():
            for _ in range(n):
                self._queue.put("0.0")

    def put(self, sent: float) -> None:
        self._queue.put(str(sent))

    def work(self) -> None:
        while True:
            message = self._queue.pop()
            if message is None:
                time.sleep(0.01)
                continue
            self.job(float(message.data))
            self._queue.done(message.message_id)

    def left(self) -> int | None:
        return int(self._open().qsize())

    def _open(self) -> litequeue.LiteQueue:
        queue = litequeue.LiteQueue(Path(self.place) / "litequeue.db")
        if self.variant == "full":
            queue.conn.execute("PRAGMA synchronous = FULL")
        return queue
