"""Where a world keeps its jobs: one fresh store per world, opened once by each process."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing.util import Finalize  # unlike atexit it also works in the children of a pool
from pathlib import Path
from typing import Any, Protocol

from treppe.store.sqlite import SQLiteStore

Clock = Callable[[], float]

MEMORY = Path("/dev/shm")


class Place(Protocol):
    """A kind of store. ``can_within``: somebody's own transaction can put jobs."""

    can_within: bool

    def fresh(self) -> None:
        """Forget everything: the next world begins."""

    def open(self, clock: Clock) -> Any:
        """The store, as a process that was just started opens it."""

    def connect(self) -> Any:
        """A caller's own connection in a transaction, as a context manager."""

    def close(self) -> None:
        """Let go of everything."""


class SQLitePlace:
    """A file in memory, without waiting for any disk."""

    can_within = True

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None, prefix="treppe-sim-"))
        self._file, self._template = self._folder / "jobs.db", self._folder / "template.db"
        self._opened: list[SQLiteStore] = []
        Finalize(None, self.close, exitpriority=10)

    def fresh(self) -> None:
        self._close_all()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._file}{suffix}").unlink(missing_ok=True)
        if not self._template.exists():
            with closing(SQLiteStore(self._template, durable=False)) as store:
                store.migrate()
        shutil.copyfile(self._template, self._file)

    def open(self, clock: Clock) -> SQLiteStore:
        store = SQLiteStore(self._file, clock=clock, durable=False, keep_events=60.0)
        self._opened.append(store)
        return store

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def close(self) -> None:
        self._close_all()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _close_all(self) -> None:
        for store in self._opened:
            store.close()
        self._opened.clear()


class PostgresPlace:
    """A database on a server (a throw-away one, if none is given), made anew from a template for each world."""

    can_within = True

    def __init__(self, server: Any = None) -> None:
        from tests import servers

        self._stack = ExitStack()
        Finalize(None, self.close, exitpriority=10)
        self._server = server or self._stack.enter_context(servers.running(18))
        self._template = servers.migrated(self._server)
        self._name = ""
        self._opened: list[Any] = []

    def fresh(self) -> None:
        self._close_all()
        if self._name:
            self._server.drop(self._name)
        self._name = self._server.create(self._template)

    def open(self, clock: Clock) -> Any:
        from treppe.store.postgres import PostgresStore

        store = PostgresStore(self._server.socket_url(self._name), clock=clock, keep_events=60.0)
        self._opened.append(store)
        return store

    @contextmanager
    def connect(self) -> Iterator[Any]:
        import psycopg

        url = self._server.socket_url(self._name)
        with closing(psycopg.connect(url, cursor_factory=psycopg.RawCursor)) as connection:
            yield connection

    def close(self) -> None:
        self._close_all()
        if self._name:
            self._server.drop(self._name)
            self._name = ""
        self._stack.close()

    def _close_all(self) -> None:
        for store in self._opened:
            store.close()
        self._opened.clear()


KINDS: dict[str, Callable[[], Place]] = {"sqlite": SQLitePlace, "postgres": PostgresPlace}
