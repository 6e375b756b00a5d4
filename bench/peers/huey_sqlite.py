"""huey on SQLite (https://huey.readthedocs.io). No bulk enqueue; a job is gone once a worker has taken it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, ClassVar

import huey  # type: ignore[import-untyped]

from bench.peers import Queue, Variant

_ONE = "SqliteHuey, one consumer thread (its default, and its fastest for no-ops)"


class Peer(Queue):
    """One SqliteHuey and its consumer."""

    packages = ("huey",)
    variants: ClassVar = {
        "no_fsync": Variant("huey, fsync=False", f"{_ONE}, fsync=False: nothing survives a power cut", durable=False),
        "fsync": Variant("huey, fsync=True", f"{_ONE}, fsync=True", durable=True, most=10_000),
    }

    def begin(self) -> None:
        logging.getLogger("huey").setLevel(logging.WARNING)
        self._huey = huey.SqliteHuey("bench", filename=str(Path(self.place) / "huey.db"), fsync=self.variant == "fsync")

        @self._huey.task(name="bench")  # type: ignore[untyped-decorator]
        def bench(sent: float) -> None:
            self.job(sent)

        self._task: Any = bench

    def fill(self, n: int, delay: float = 0.0) -> None:
        for _ in range(n):
            self._task.schedule((0.0,), delay=delay) if delay else self._task(0.0)

    def put(self, sent: float) -> None:
        self._task(sent)

    def work(self) -> None:
        self._huey.create_consumer(workers=1, periodic=False).run()
