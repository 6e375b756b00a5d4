"""Treppe, whatever the store: a peer for a store is a subclass that says where the jobs lie."""

from __future__ import annotations

import time
from typing import Any, ClassVar, cast

from bench.peers import Job, Queue, chunks, contestants, peer
from treppe.app import Treppe
from treppe.config import Settings
from treppe.run import work

PREFIX = "treppe_"


class TreppePeer(Queue):
    """The ordinary Python task, enqueued by its public functions and carried out as `treppe work` would."""

    packages: ClassVar[tuple[str, ...]] = ("treppe", "msgspec")
    store: ClassVar[str]
    """The store's name, for people."""

    def begin(self) -> None:
        self.url = self.url_of(self.place)
        self._app = Treppe(self.url)
        self._task: Any = self._app.task(_FORMS[self.variant](self.job), name="bench", queue="bench")

    @staticmethod
    def url_of(place: str) -> str:
        """The store's URL, for jobs that lie there."""
        return place

    def prepare(self) -> None:
        self._app.store.close()  # opening it has made the tables

    def connect(self) -> None:
        self._app.store.now()

    def fill(self, n: int, delay: float = 0.0) -> None:
        task = self._task.using(delay=delay)
        for size in chunks(n, 10_000):
            self._app.enqueue_many([task.prepare(0.0) for _ in range(size)])

    def put(self, sent: float) -> None:
        self._task.enqueue(sent)

    def work(self) -> None:
        work(Settings(store=self.url), self._app)

    def left(self) -> int | None:
        return self._app.store.backlog().open


def ours(store: str) -> list[str]:
    """Plain tasks in threads on this store, as a list of one contestant; empty where it cannot run."""
    return [name for name in contestants(store) if name.startswith(PREFIX) and name.endswith("/threads")]


def once(contestants: list[str]) -> list[str]:
    """The same ones, Treppe with its plain tasks only."""
    return [name for name in contestants if not name.startswith(PREFIX) or name.endswith("/threads")]


def peer_of(contestant: str) -> type[TreppePeer]:
    """Our peer behind a contestant's name."""
    return cast(type[TreppePeer], peer(contestant.partition("/")[0]))


def _plain(job: Job) -> Any:
    def bench(sent: float) -> None:
        if lasts := job(sent):
            time.sleep(lasts)

    return bench


def _async(job: Job) -> Any:
    async def bench(sent: float) -> None:
        job(sent)

    return bench


_FORMS = {"threads": _plain, "async": _async}
