"""Where a world keeps its jobs: one fresh store per world, opened once by each process."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
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


class SQLitePlace:
    """A file in memory, without waiting for any disk."""

    can_within = True

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None, prefix="treppe-sim-")
        self._file = Path(self._folder.name) / "jobs.db"
        self._template = Path(self._folder.name) / "template.db"
        self._opened: list[SQLiteStore] = []

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
        self._folder.cleanup()

    def _close_all(self) -> None:
        for store in self._opened:
            store.close()
        self._opened.clear()


KINDS: dict[str, Callable[[], Place]] = {"sqlite": SQLitePlace}
