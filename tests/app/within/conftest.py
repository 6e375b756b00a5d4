"""A shop: one database for its orders and for its jobs, and a way into it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.app.within.drivers import DRIVERS, Driver
from tests.servers import Server, migrated
from treppe import Treppe
from treppe.app import open_store
from treppe.store.postgres import PostgresStore
from treppe.store.protocol import Store

ORDERS = "CREATE TABLE orders (id INTEGER PRIMARY KEY {}, name TEXT)"


class Shop:
    """The app, its database as the drivers name it, and what is committed there."""

    def __init__(self, url: str, app: Treppe) -> None:
        self.url, self.app = url, app
        self.mail = app.task(name="mail", queue="mail", key="to")(lambda to, order=0: order)

    def another_store(self) -> Store:
        """One more on the same database."""
        in_a_file = self.url.endswith(".db")
        return open_store(f"sqlite:///{self.url}", durable=False) if in_a_file else PostgresStore(self.url)

    def jobs(self) -> int:
        return self.app.store.backlog().accepted

    def orders(self) -> int:
        connect = sqlite3.connect if self.url.endswith(".db") else psycopg.connect
        with closing(connect(self.url)) as connection:
            return connection.execute("SELECT count(*) FROM orders").fetchone()[0]

    def both(self) -> tuple[int, int]:
        return self.orders(), self.jobs()


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Shop]:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(ORDERS.format(""))
    app = Treppe(open_store(f"sqlite:///{file}", durable=False))
    yield Shop(str(file), app)
    app.close()


@pytest.fixture(scope="session")
def shop_template(postgres18: Server) -> str:
    """A database with Treppe's tables and one for orders, to be copied."""
    name = postgres18.create(migrated(postgres18))
    postgres18.execute(ORDERS.format("GENERATED ALWAYS AS IDENTITY"), name)
    return name


@pytest.fixture(scope="session")
def other_url(postgres18: Server, shop_template: str) -> Iterator[str]:
    """Another shop's database: a copy, on the same server."""
    name = postgres18.create(shop_template)
    yield postgres18.socket_url(name)
    postgres18.drop(name)


@pytest.fixture(scope="session")
def postgres_shop(postgres18: Server, shop_template: str) -> Iterator[Shop]:
    """One for all tests: a database for each would cost minutes."""
    name = postgres18.create(shop_template)
    app = Treppe(PostgresStore(postgres18.socket_url(name)))
    yield Shop(postgres18.socket_url(name), app)
    app.close()
    postgres18.drop(name)


@pytest.fixture
def on_postgres(postgres_shop: Shop) -> Iterator[Shop]:
    yield postgres_shop
    postgres_shop.app.close()
    with psycopg.connect(postgres_shop.url, options="-c lock_timeout=10s") as connection:
        tables = connection.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname = 'treppe' AND tablename <> 'schema' OR tablename = 'orders'"
        ).fetchall()
        for (table,) in tables:
            connection.execute(f"DELETE FROM {table}")


@pytest.fixture(params=DRIVERS, scope="session")
def kind(request: pytest.FixtureRequest) -> type[Driver]:
    """Each driver in turn; its server is started before any test looks at what runs."""
    kind = DRIVERS[request.param]
    if kind.dialect == "postgresql":
        request.getfixturevalue("postgres_shop")
    return kind


@pytest.fixture
def shop(kind: type[Driver], request: pytest.FixtureRequest) -> Shop:
    """A shop in a database of the driver's kind."""
    return request.getfixturevalue("on_sqlite" if kind.dialect == "sqlite" else "on_postgres")


@pytest.fixture
def driver(kind: type[Driver], shop: Shop) -> Driver:
    return kind(shop.url)
