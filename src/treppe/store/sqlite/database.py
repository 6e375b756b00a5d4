"""One SQLite file: its connections, its write lock, its errors.

Group commit without a thread of its own: whoever gets the lock writes everything that is pending in one
transaction, so concurrent callers share one fsync and a lone caller pays no hand-over. Every write begins
with BEGIN IMMEDIATE: a deferred transaction that upgrades fails at once with BUSY_SNAPSHOT, whatever the
timeout says. Waiting for another process is our own loop with jitter; SQLite's would sleep up to 100 ms.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeVar

from treppe.config.rules.store import NETWORK, disk_kind
from treppe.errors import StoreError, StoreUnavailable, TreppeError

T = TypeVar("T")
Connection = sqlite3.Connection

MAX_GROUP = 100
MAX_ROWS = 64
BUSY_AFTER = 5.0

SQL = {
    entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
    for entry in resources.files(__package__).joinpath("sql").iterdir()
    if entry.name.endswith(".sql")
}
"""Every statement by the name of its file."""


def insert_all(db: Connection, name: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Insert many rows in few steps; how many were inserted.

    The driver gives the interpreter's lock away at each step, and in a busy process gets it back late: a row a step
    (``executemany``) would wait for every other thread once a row.
    """
    done = inserted = 0
    while done < len(rows):
        size = 1 << min(len(rows) - done, MAX_ROWS).bit_length() - 1
        values = [value for row in rows[done : done + size] for value in row]
        inserted += db.execute(_for_rows(name, size), values).rowcount
        done += size
    return inserted


@cache
def _for_rows(name: str, size: int) -> str:
    return _ROW.sub(lambda row: "VALUES " + ", ".join([row[1]] * size), SQL[name])


_ROW = re.compile(r"VALUES (\([?, ]*\))")


class ByName(sqlite3.Connection):
    """Gives numbered parameters by name."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """One statement."""
        return super().execute(sql, _named(sql, parameters))

    def executemany(self, sql: str, rows: Any, /) -> sqlite3.Cursor:
        """The same for many rows."""
        return super().executemany(sql, (_named(sql, row) for row in rows))


def _named(sql: str, parameters: Any) -> Any:
    return {str(n): value for n, value in enumerate(parameters, 1)} if "?1" in sql else parameters


CONNECTION = ByName if (3, 12) <= sys.version_info < (3, 12, 4) else sqlite3.Connection
"""Python 3.12.0 to 3.12.3 take ``?1`` for a name, and warn when it is not given by name (python/cpython#117995)."""


class _Pending(Generic[T]):
    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[Connection], T]) -> None:
        self.work = work
        self.done = False
        self.error: BaseException | None = None
        self.result: T | None = None


class _Open:
    """What belongs to one process: connections and locks do not survive a fork."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.write_lock = threading.Lock()
        self.apart_lock = threading.Lock()
        self.main: Connection | None = None
        self.apart: Connection | None = None
        self.readers: deque[Connection] = deque()
        self.pending: deque[_Pending[Any]] = deque()


class Database:
    """The file at *path*. ``durable=False`` is for tests: no fsync, so a power cut may lose everything."""

    def __init__(self, path: str | os.PathLike[str], durable: bool = True, busy_after: float = BUSY_AFTER) -> None:
        self.path = Path(path).absolute()
        self.durable = durable
        self.busy_after = busy_after
        self._opened = _Open()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run *work* in a transaction; return when it is on disk. Several threads share one commit."""
        opened = self._here()
        mine = _Pending(work)
        opened.pending.append(mine)
        while not mine.done:
            with opened.write_lock:
                if not mine.done:
                    self._commit_pending(opened)
        if mine.error is not None:
            raise mine.error
        return mine.result  # type: ignore[return-value]

    def try_write(self, work: Callable[[Connection], T]) -> T | None:
        """The same where nobody else is writing; else None, and nothing was done."""
        opened = self._here()
        if not opened.write_lock.acquire(blocking=False):
            return None
        try:
            with translated(self.path):
                connection = self._writer(opened)
                try:
                    connection.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if _is_busy(error):
                        return None
                    raise
                return self._committed(connection, lambda: work(connection))
        finally:
            opened.write_lock.release()

    def write_apart(self, work: Callable[[Connection], T]) -> T:
        """The same on a connection of its own, for what must not wait behind other writers of this process."""
        opened = self._here()
        with opened.apart_lock, translated(self.path):
            connection = opened.apart = opened.apart or self._connect(busy_timeout=0)
            return self._transact(connection, lambda: work(connection))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run *work* on one snapshot that sees everything committed so far."""
        readers = self._here().readers
        with translated(self.path):
            connection = self._borrow(readers)
            try:
                connection.execute("BEGIN")
                try:
                    return work(connection)
                finally:
                    connection.execute("ROLLBACK")
            finally:
                readers.append(connection)

    def version(self) -> int | None:
        """A number that changes when *another* connection has committed; None when a write is under way here."""
        opened = self._here()
        if not opened.write_lock.acquire(blocking=False):
            return None
        try:
            return int(self._ask(opened, "PRAGMA data_version"))
        finally:
            opened.write_lock.release()

    def pragma(self, name: str) -> Any:
        """One setting of the writing connection, e.g. ``synchronous``."""
        opened = self._here()
        with opened.write_lock:
            return self._ask(opened, f"PRAGMA {name}")

    def checkpoint(self) -> None:
        """Move the log into the file if nobody is in the way."""
        opened = self._here()
        with suppress(StoreError), opened.write_lock:
            self._ask(opened, "PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close every connection; running calls end first."""
        opened, self._opened = self._here(), _Open()
        with opened.write_lock, opened.apart_lock:
            for connection in (opened.main, opened.apart, *opened.readers):
                if connection is not None:
                    connection.close()

    def _here(self) -> _Open:
        # A forked child must not touch its parent's connections, not even to close them (POSIX locks).
        if os.getpid() != self._opened.pid:
            _abandoned.append(self._opened)
            self._opened = _Open()
        return self._opened

    def _ask(self, opened: _Open, pragma: str) -> Any:
        with translated(self.path):
            return self._writer(opened).execute(pragma).fetchone()[0]

    def _writer(self, opened: _Open) -> Connection:
        if opened.main is None:
            opened.main = self._connect(busy_timeout=0)
        return opened.main

    def _borrow(self, readers: deque[Connection]) -> Connection:
        try:
            return readers.pop()
        except IndexError:
            return self._connect()

    def _connect(self, busy_timeout: int = 5000) -> Connection:
        refuse_network_file_system(self.path)
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, cached_statements=256, factory=CONNECTION
        )
        try:
            connection.execute("PRAGMA busy_timeout = 5000")
            if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                raise StoreError(f"{self.path}: SQLite could not switch to WAL here. Put the file on a local disk")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'OFF'}")
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            connection.execute("PRAGMA cache_size = -4000")
            connection.execute(f"PRAGMA busy_timeout = {busy_timeout}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _commit_pending(self, opened: _Open) -> None:
        group: list[_Pending[Any]] = []
        try:
            while opened.pending and len(group) < MAX_GROUP:
                group.append(opened.pending.popleft())
            with translated(self.path):
                connection = self._writer(opened)
                self._transact(connection, lambda: self._run_group(connection, group))
        except Exception as error:
            self._fail(group, error)
        except BaseException:  # of this thread alone: the others learn only that nothing was written
            self._fail(group, StoreUnavailable(f"{self.path}: the write was interrupted"))
            raise
        finally:
            for one in group:
                one.done = True

    def _fail(self, group: list[_Pending[Any]], error: Exception) -> None:
        for one in group:
            one.error = one.error or error

    def _run_group(self, connection: Connection, group: list[_Pending[Any]]) -> None:
        if len(group) == 1:
            group[0].result = group[0].work(connection)
            return
        for one in group:
            connection.execute("SAVEPOINT one")
            try:
                with translated(self.path):
                    one.result = one.work(connection)
            except Exception as error:  # whatever it is, it is for that caller alone
                one.error = error
                connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")

    def _transact(self, connection: Connection, work: Callable[[], T]) -> T:
        self._begin(connection)
        return self._committed(connection, work)

    def _committed(self, connection: Connection, work: Callable[[], T]) -> T:
        try:
            result = work()
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return result

    def _begin(self, connection: Connection) -> None:
        give_up = time.monotonic() + self.busy_after
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > give_up:
                    raise
                time.sleep(random.uniform(0.0002, 0.002))


_abandoned: list[_Open] = []


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except TreppeError:
        raise
    except sqlite3.OperationalError as error:
        text = str(error)
        if "unable to open" in text or "readonly" in text or "attempt to write" in text:
            raise StoreUnavailable(f"{path}: {text}. Does the folder exist, and may this user write there?") from error
        if "no such table" in text or "no such column" in text:
            raise StoreError(f"{path}: {text}. Run: treppe migrate") from error
        raise StoreUnavailable(f"{path}: {text}") from error
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error):
            raise StoreError(f"{path}: this is not a SQLite file. Name another file in `store`") from error
        raise StoreError(f"{path}: {error}") from error
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return (error.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def refuse_network_file_system(path: Path) -> None:
    """WAL needs shared memory, which network file systems do not have; locks there are a matter of luck."""
    kind = disk_kind(path)
    if kind in NETWORK:
        raise StoreError(f"{path}: SQLite needs a local disk, and this is {kind}. Use a local path, or PostgreSQL")
