"""Treppe, whatever the store: a peer for a store is a subclass that says where the jobs lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, cast

from bench.peers import Job, contestants, peer
from treppe.app import Treppe
from treppe.config import Settings
from treppe.run import work

PREFIX = "treppe_"
MOST_AT_ONCE = 10_000


class TreppePeer:
    """The ordinary Python task, enqueued by its public functions and carried out as `treppe work` would."""

    packages = ("treppe", "msgspec")
    store: ClassVar[str]
    """The store's name, for people."""

    def __init__(self, folder: Path, variant: str, job: Job) -> None:
        self.url = self.url_of(folder)
        self._app = Treppe(self.url)
        self._task: Any = self._app.task(_FORMS[variant](job), name="bench", queue="bench")

    @staticmethod
    def url_of(folder: Path) -> str:
        """The store's URL, for jobs that lie in this folder."""
        raise NotImplementedError

    def fill(self, n: int) -> None:
        for start in range(0, n, MOST_AT_ONCE):
            self._app.enqueue_many([self._task.prepare(0.0) for _ in range(min(MOST_AT_ONCE, n - start))])

    def put(self, sent: float) -> None:
        self._task.enqueue(sent)

    def work(self) -> None:
        work(Settings(store=self.url), self._app)

    def left(self) -> int | None:
        return self._app.store.backlog().open


def stores() -> list[str]:
    """One contestant, plain tasks in threads, for each store of ours that is installed."""
    return [name for name in contestants() if name.startswith(PREFIX) and name.endswith("/threads")]


def peer_of(contestant: str) -> type[TreppePeer]:
    """Our peer behind a contestant's name."""
    return cast(type[TreppePeer], peer(contestant.partition("/")[0]))


def _plain(job: Job) -> Any:
    def bench(sent: float) -> None:
        job(sent)

    return bench


def _async(job: Job) -> Any:
    async def bench(sent: float) -> None:
        job(sent)

    return bench


_FORMS = {"threads": _plain, "async": _async}
