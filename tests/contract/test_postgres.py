"""The PostgreSQL store keeps the contract: on the newest server, on the oldest, and behind PgBouncer.

On the newest all of it is tested each time, on the others those themes that send every statement; the rest of theirs
is for the night (``python3 dev.py nightly``, or ``-m nightly``).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.servers import Bouncer, Server, shared
from treppe.store.postgres import PostgresStore
from treppe.testing.contract import THEMES, Contract, Opener, StoreContract
from treppe.testing.contract.claiming import Claiming
from treppe.testing.contract.events import Events
from treppe.testing.contract.figures import Figures
from treppe.testing.contract.finding import Finding
from treppe.testing.contract.journals import Journals
from treppe.testing.contract.keys import Keys
from treppe.testing.contract.processes import Processes
from treppe.testing.contract.slots import Slots
from treppe.testing.contract.states import States
from treppe.testing.contract.upkeep import Upkeep
from treppe.testing.contract.within import Within

EVERY_STATEMENT = (Claiming, Events, Figures, Finding, Journals, Keys, Processes, Slots, States, Upkeep, Within)
THE_REST = tuple(theme for theme in THEMES if theme not in EVERY_STATEMENT)


class OnPostgres(Contract):
    """One database for all tests, emptied after each."""

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


class TestOnPostgres18(OnPostgres, StoreContract):
    @pytest.fixture
    def server(self, postgres18: Server) -> Server:
        return postgres18


class OnPostgres15(OnPostgres):
    @pytest.fixture
    def server(self, postgres15: Server) -> Server:
        return postgres15


class TestOnPostgres15(OnPostgres15, *EVERY_STATEMENT):
    pass


@pytest.mark.nightly
class TestTheRestOnPostgres15(OnPostgres15, *THE_REST):
    pass


class BehindPgBouncer(OnPostgres):
    @pytest.fixture
    def server(self, postgres18: Server, pgbouncer: Bouncer) -> Server:
        self.bouncer = pgbouncer
        return postgres18

    def url(self) -> str:
        return self.bouncer.url(self.name)


class TestBehindPgBouncer(BehindPgBouncer, *EVERY_STATEMENT):
    pass


@pytest.mark.nightly
class TestTheRestBehindPgBouncer(BehindPgBouncer, *THE_REST):
    pass
