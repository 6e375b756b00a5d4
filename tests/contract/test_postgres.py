"""The PostgreSQL store keeps the contract: on the newest server, on the oldest, and behind PgBouncer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.servers import Bouncer, Server, shared
from treppe.store.postgres import PostgresStore
from treppe.testing.contract import Opener, StoreContract


class OnPostgres(StoreContract):
    """One database for all tests, emptied after each."""

    __test__ = False

    @pytest.fixture(autouse=True)
    def database(self, server: Server) -> Iterator[None]:
        self.server = server
        self.name = shared(server)
        yield
        server.empty(self.name)

    def url(self) -> str:
        return self.server.socket_url(self.name)

    def make_store(self, tmp_path, clock):
        return PostgresStore(self.url(), clock=None if clock is time.time else clock)

    def opener(self, tmp_path):
        return Opener("treppe.store.postgres:PostgresStore", (self.url(),))

    @contextmanager
    def connect(self, tmp_path: Path) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self.url(), cursor_factory=psycopg.RawCursor) as connection:
            yield Guest(connection)


class Guest:
    """A caller's own connection that gives no rows where a statement has none."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.commit, self.rollback = connection.commit, connection.rollback

    def execute(self, sql: str, parameters=()) -> psycopg.Cursor:
        return self.connection.execute(sql, parameters)


class TestOnPostgres18(OnPostgres):
    __test__ = True

    @pytest.fixture
    def server(self, postgres18: Server) -> Server:
        return postgres18


class TestOnPostgres15(OnPostgres):
    __test__ = True

    @pytest.fixture
    def server(self, postgres15: Server) -> Server:
        return postgres15


class TestBehindPgBouncer(OnPostgres):
    __test__ = True

    @pytest.fixture
    def server(self, postgres18: Server, pgbouncer: Bouncer) -> Server:
        self.bouncer = pgbouncer
        return postgres18

    def url(self) -> str:
        return self.bouncer.url(self.name)
