"""What the jobs of a measure lie on: a folder of SQLite files, or a PostgreSQL server of the bench's own."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, Protocol

import msgspec

from bench.peers import peer
from bench.processes import Stuck, fresh_folder
from bench.roles import Part, start
from treppe.demo.postgres import NoServer, Server, any_server

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "max_connections": "300",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
    "pg_stat_statements.track_utility": "off",
}
"""Durable; the rest is the server's default. Statements are only counted where a measure asks for it."""

PREPARES_WITHIN = 120.0


class Place(msgspec.Struct, frozen=True):
    """A fresh place for one peer's jobs, and a folder for what its processes tell."""

    contestant: str
    where: str
    folder: str

    def part(self, n: int = 0, **more: Any) -> Part:
        """Take part in it."""
        return Part(self.contestant, self.where, self.folder, n, **more)


class Ground(Protocol):
    """A store as the measures see it."""

    store: str
    title: str
    version: str

    def place(self, contestant: str, like: str = "") -> AbstractContextManager[Place]:
        """A fresh place, gone after the block; with *like* it begins as a copy of that place."""

    def settle_down(self, place: Place) -> None:
        """After many jobs were put at once: what the store's own upkeep would do in time."""

    def watch(self, place: Place) -> AbstractContextManager[Callable[[], bool]]:
        """Asks whether a job there is not at its end."""


class SQLiteGround:
    """A file for each."""

    store, title = "sqlite", "SQLite"

    def __init__(self) -> None:
        import sqlite3

        self.version = f"SQLite {sqlite3.sqlite_version}"

    @contextmanager
    def place(self, contestant: str, like: str = "") -> Iterator[Place]:
        with fresh_folder() as folder:
            if like:
                shutil.copytree(like, folder, dirs_exist_ok=True)
            yield Place(contestant, str(folder), str(folder))

    def settle_down(self, place: Place) -> None:
        """It does nothing by itself."""

    @contextmanager
    def watch(self, place: Place) -> Iterator[Callable[[], bool]]:
        name, variant = place.contestant.split("/")
        queue = peer(name)(place.where, variant, _nothing)
        yield lambda: bool(queue.left())


class PostgresGround:
    """One server; a database for each, copied from one in which the peer has made its tables."""

    store, title = "postgres", "PostgreSQL"

    def __init__(self, server: Server) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._prepared: dict[str, str] = {}
        self.version = f"PostgreSQL {self.execute('SHOW server_version')[0][0].split()[0]}"

    def url(self, database: str = "postgres") -> str:
        """Over TCP, as every client can. Some want a password, whatever it is."""
        return self._server.url(database).replace("postgres@", "postgres:bench@")

    @contextmanager
    def place(self, contestant: str, like: str = "") -> Iterator[Place]:
        template = like.rpartition("/")[2] or self._prepare(contestant)
        database = self._create(template)
        try:
            with fresh_folder() as folder:
                yield Place(contestant, self.url(database), str(folder))
        finally:
            self.execute(f"DROP DATABASE {database} WITH (FORCE)")

    def settle_down(self, place: Place) -> None:
        """Statistics: without them the plans of some peers are a matter of luck."""
        self.execute("ANALYZE", place.where)

    @contextmanager
    def watch(self, place: Place) -> Iterator[Callable[[], bool]]:
        question = peer(place.contestant.partition("/")[0]).open
        with closing(connect(place.where)) as connection:
            yield lambda: bool(connection.execute(question).fetchone()[0])

    def count_statements(self, place: Place) -> None:
        """Count the statements of whoever connects from now on."""
        database = place.where.rpartition("/")[2]
        self.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        self.execute(f"ALTER DATABASE {database} SET pg_stat_statements.track = 'top'")

    def statements(self, place: Place) -> int:
        """How many there were."""
        oid = f"(SELECT oid FROM pg_database WHERE datname = '{place.where.rpartition('/')[2]}')"
        return int(self.execute(f"SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE dbid = {oid}")[0][0])

    def written(self) -> int:
        """Bytes of write-ahead log so far, of all databases."""
        return int(self.execute("SELECT pg_current_wal_lsn() - '0/0'")[0][0])

    def execute(self, sql: str, url: str = "") -> list[tuple[Any, ...]]:
        """Run one statement; its rows."""
        with closing(connect(url or self.url())) as connection:
            cursor = connection.execute(sql)
            return list(cursor.fetchall()) if cursor.description else []

    def _create(self, template: str) -> str:
        database = f"bench_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {database} TEMPLATE {template} STRATEGY FILE_COPY")
        self.execute("CHECKPOINT")
        return database

    def _prepare(self, contestant: str) -> str:
        name = contestant.partition("/")[0]
        if name not in self._prepared:
            database = self._create("template0")
            with start("prepare", Part(contestant, self.url(database), str(self._server.folder))) as child:
                child.answer(PREPARES_WITHIN)
            self.execute(f"ALTER DATABASE {database} WITH ALLOW_CONNECTIONS false")
            self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
            self._prepared[name] = database
        return self._prepared[name]


@contextmanager
def ground(store: str) -> Iterator[Ground]:
    """The ground for this store, for the length of the block."""
    if store == "sqlite":
        yield SQLiteGround()
        return
    try:
        server = any_server(**SETTINGS)
    except NoServer as error:
        raise Stuck(str(error)) from None
    try:
        server.start()
        yield PostgresGround(server)
    finally:
        server.remove()


def connect(url: str) -> Any:
    """A connection of the bench itself."""
    import psycopg

    return psycopg.connect(url, autocommit=True)


def _nothing(sent: float) -> float:
    """Nobody carries this out."""
    return 0.0
