"""One PostgreSQL database: its connections, its transactions, its clock, its errors.

Statements have numbered placeholders (``$1``). Their parameters travel in binary, with the types of :func:`_types`:
int is bigint, float is double precision, str is text, bytes is bytea, and a list is an array of these.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from treppe.errors import StoreUnavailable
from treppe.store.postgres.connecting import LIMITS, Connection, connect, is_idle, is_pooled, is_usable, translated

T = TypeVar("T")
Row = tuple[Any, ...]
Clock = Callable[[], float]

MAX_CONNECTIONS = 12
BUSY_AFTER = 10.0
TRIES = 8

BEGIN = "BEGIN"
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
NOW = "extract(epoch FROM clock_timestamp())"

SQL = {
    entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
    for entry in resources.files(__package__).joinpath("sql").iterdir()
    if entry.name.endswith(".sql")
}
"""Every statement by the name of its file."""


class Tx:
    """One transaction. It begins with its first statement, in the same round trip if that is in a pipeline."""

    __slots__ = ("_begin", "_clock", "_connection", "_now")

    def __init__(self, connection: Connection, clock: Clock | None, begin: str) -> None:
        self._connection = connection
        self._clock = clock
        self._now: float | None = None
        self._begin: str | None = begin

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """All rows of a statement."""
        return self._execute(sql, params).fetchall()

    def answer(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """All rows of a statement that may have none to give."""
        return _rows_of(self._execute(sql, params))

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        """How many rows a statement touched."""
        cursor = self._execute(sql, params)
        if (pipeline := self._connection._pipeline) is not None:  # noqa: SLF001 - there is no public way to ask
            pipeline.sync()
        return cursor.rowcount

    def send(self, sql: str, params: Sequence[Any] = ()) -> Callable[[], list[Row]]:
        """Send a statement on its way; call what is returned for its rows. Within :meth:`pipeline` nothing waits."""
        return self._execute(sql, params).fetchall

    def many(self, sql: str, params: Sequence[Sequence[Any]]) -> int:
        """Run a statement once for each set of parameters, in one round trip; how many rows were touched."""
        self._begin_it()
        cursor = self._connection.cursor(binary=True)
        cursor.executemany(self._timed(sql), params)
        return cursor.rowcount

    def load(self, sql: str, blocks: Iterable[bytes]) -> None:
        """Feed a COPY FROM STDIN."""
        self._begin_it()
        with self._connection.cursor().copy(sql) as copy:
            for block in blocks:
                copy.write(block)

    def script(self, sql: str) -> None:
        """Several statements at once, without parameters and answers."""
        self._begin_it()
        self._connection.execute(sql)

    def commit(self) -> None:
        """End it, if it ever began; within :meth:`pipeline` in the same round trip. It is done at the end of that."""
        if self._begin is None:
            self._begin = BEGIN
            self._connection.execute("COMMIT")

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        """Send several statements without waiting for the answer of each."""
        with self._connection.pipeline():
            yield

    def now(self) -> float:
        """The database's clock, read once per transaction."""
        if self._now is None:
            self._now = self._clock() if self._clock else float(self.rows(f"SELECT {NOW}::double precision")[0][0])
        return self._now

    def clock_or(self, told: float) -> float:
        """What the database just told, unless there is a clock for tests: that one is read now."""
        return self._clock() if self._clock else told

    def _execute(self, sql: str, params: Sequence[Any]) -> psycopg.Cursor[Row]:
        self._begin_it()
        return self._connection.cursor(binary=True).execute(self._timed(sql), params)

    def _begin_it(self) -> None:
        if self._begin is not None:
            begin, self._begin = self._begin, None
            if is_pooled(self._connection):
                with self._connection.pipeline():
                    self._connection.execute(begin)
                    self._connection.execute(LIMITS)
            else:
                self._connection.execute(begin)

    def _timed(self, sql: str) -> str:
        return timed(sql, self._clock)


def timed(sql: str, clock: Clock | None) -> str:
    """The statement by another clock than the database's own: for tests."""
    if clock is None or "clock_timestamp" not in sql:
        return sql
    now = clock()
    return sql.replace(NOW, f"({now!r}::double precision)").replace("clock_timestamp()", f"to_timestamp({now!r})")


def _rows_of(cursor: psycopg.Cursor[Row]) -> list[Row]:
    """Its rows, of which there are none if it is no statement that has some. (The cursor's own description is slow.)"""
    result = cursor.pgresult
    return cursor.fetchall() if result is not None and result.nfields else []


class _Apart:
    """A connection for one kind of call, one at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._connection: Connection | None = None

    def use(self, url: str, work: Callable[[Connection], T]) -> T:
        """Do some work on it; it is opened, or opened anew, if need be."""
        with self.lock:
            if self._connection is not None and not is_usable(self._connection):
                self._connection.close()
                self._connection = None
            self._connection = self._connection or connect(url)
            return work(self._connection)

    def close(self) -> None:
        """Close it once nobody uses it."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()


class _Open:
    """What belongs to one process: connections and locks do not survive a fork."""

    def __init__(self, size: int) -> None:
        self.pid = os.getpid()
        self.free: deque[Connection] = deque()
        self.places = threading.BoundedSemaphore(size)
        self.settling, self.renewing = _Apart(), _Apart()
        self.closed = False


class Database:
    """The database behind *url*. At most *size* connections, and two apart for what must never wait for them: ends of
    jobs, and leases, which wait for nobody's end either."""

    def __init__(self, url: str, clock: Clock | None = None, size: int = MAX_CONNECTIONS) -> None:
        self.url = url
        self.clock = clock
        self._size = size
        self._opened = _Open(size)

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run *work* in a READ COMMITTED transaction; return when it is committed. It may be run more than once."""
        return self._again(lambda: self._with_any(lambda connection: self._transact(connection, BEGIN, work)))

    def write_apart(self, work: Callable[[Tx], T]) -> T:
        """The same on a connection of its own, which waits for nobody else of this process."""
        apart = self._here().settling
        return self._again(lambda: apart.use(self.url, lambda connection: self._transact(connection, BEGIN, work)))

    def read(self, work: Callable[[Tx], T]) -> T:
        """Run *work* on one snapshot."""
        return self._again(lambda: self._with_any(lambda connection: self._transact(connection, BEGIN_READ, work)))

    def once(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """One statement that is a transaction of its own, in one round trip."""
        return self._again(lambda: self._with_any(lambda connection: self._one(connection, sql, params)))

    def once_apart(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """The same on another connection apart."""
        apart = self._here().renewing
        return self._again(lambda: apart.use(self.url, lambda connection: self._one(connection, sql, params)))

    def now(self) -> float:
        """The database's clock."""
        return self.clock() if self.clock else float(self.once(f"SELECT {NOW}::double precision")[0][0])

    def connect(self) -> Connection:
        """One more connection, for who keeps it; the caller closes it."""
        return connect(self.url)

    def close(self) -> None:
        """Close every connection; running calls close theirs when they end."""
        opened, self._opened = self._here(), _Open(self._size)
        opened.closed = True
        self._close_free(opened)
        opened.settling.close()
        opened.renewing.close()

    def _here(self) -> _Open:
        if os.getpid() != self._opened.pid:  # forked: the connections are the parent's
            _abandoned.append(self._opened)
            self._opened = _Open(self._size)
        return self._opened

    def _again(self, attempt: Callable[[], T]) -> T:
        """Conflicts between transactions end by doing one of them again: they depend on their arguments alone."""
        with translated(self.url):
            for tried in range(TRIES):
                try:
                    return attempt()
                except (pg.SerializationFailure, pg.DeadlockDetected):
                    time.sleep(random.uniform(0.0, 0.002 * 2**tried))
            return attempt()

    def _with_any(self, work: Callable[[Connection], T]) -> T:
        opened = self._here()
        if not opened.places.acquire(timeout=BUSY_AFTER):
            raise StoreUnavailable(f"all {self._size} connections were busy for {BUSY_AFTER:g} seconds")
        try:
            connection = self._borrow(opened)
            try:
                return work(connection)
            finally:
                self._give_back(opened, connection)
        finally:
            opened.places.release()

    def _borrow(self, opened: _Open) -> Connection:
        while True:
            try:
                connection = opened.free.pop()
            except IndexError:
                return connect(self.url)
            if is_usable(connection):
                return connection
            connection.close()

    def _give_back(self, opened: _Open, connection: Connection) -> None:
        if opened.closed or not is_idle(connection):
            connection.close()
        else:
            opened.free.append(connection)
        if opened.closed:
            self._close_free(opened)

    def _close_free(self, opened: _Open) -> None:
        with suppress(IndexError):
            while True:
                opened.free.pop().close()

    def _transact(self, connection: Connection, begin: str, work: Callable[[Tx], T]) -> T:
        tx = Tx(connection, self.clock, begin)
        try:
            result = work(tx)
            tx.commit()
        except BaseException:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        return result

    def _one(self, connection: Connection, sql: str, params: Sequence[Any]) -> list[Row]:
        if is_pooled(connection):  # nothing limits how long it takes, but a transaction that says so
            return self._transact(connection, BEGIN, lambda tx: tx.answer(sql, params))
        return _rows_of(connection.cursor(binary=True).execute(timed(sql, self.clock), params))


_abandoned: list[_Open] = []
