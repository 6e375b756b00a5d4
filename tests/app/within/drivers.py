"""Everything that ``within=`` knows, behind one face: begin, say SQL, enqueue, commit, roll back, get lost.

All of it is ``async`` on the surface; what is beneath a plain driver never waits, so its stories run without a loop.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

import aiosqlite
import asyncpg
import django
import psycopg
import psycopg2
import sqlalchemy
from django.conf import settings
from django.db import connections, transaction
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from treppe import Placed, Treppe
from treppe.job import NewJob

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
django.setup()


class Driver:
    """One way into a database. ``connection`` is what is handed to ``within=``."""

    dialect = "postgresql"
    is_async = False
    autocommit_cure = ""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection: Any = None

    async def open(self, autocommit: bool = False) -> None:
        raise NotImplementedError

    async def begin(self) -> None:
        """For drivers that do not begin by themselves."""

    async def run(self, sql: str) -> None:
        self.connection.execute(sql)

    async def value(self, sql: str) -> Any:
        return self.connection.execute(sql).fetchone()[0]

    async def savepoint(self) -> None:
        await self.run("SAVEPOINT theirs")

    async def back_to_savepoint(self) -> None:
        await self.run("ROLLBACK TO SAVEPOINT theirs")

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()

    async def raw(self) -> Any:
        """The connection of the driver beneath."""
        return self.connection

    # The same for all

    async def order(self) -> None:
        await self.run("INSERT INTO orders (name) VALUES ('Ada')")

    async def enqueue(self, app: Treppe, id: str, to: str = "ada", **using: Any) -> Placed:
        call = app.tasks["mail"].using(id=id, within=self.connection, **using)
        return await call.aenqueue(to) if self.is_async else call.enqueue(to)

    async def enqueue_many(self, app: Treppe, jobs: list[NewJob]) -> list[Placed]:
        if self.is_async:
            return await app.aenqueue_many(jobs, within=self.connection)
        return app.enqueue_many(jobs, within=self.connection)

    @asynccontextmanager
    async def opened(self, autocommit: bool = False) -> AsyncIterator[Driver]:
        """Open, in a transaction unless in autocommit; closed whatever happens, so that what is uncommitted is lost."""
        await self.open(autocommit)
        try:
            if not autocommit:
                await self.begin()
            yield self
        finally:
            with suppress(Exception):  # of a connection that was lost
                await self.close()


def play(driver: Driver, story: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a story: in an event loop where the driver wants one, else without, for Django refuses to work in one."""
    if driver.is_async:
        return asyncio.run(story())
    try:
        story().send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a plain driver waited")


class Sqlite3(Driver):
    dialect = "sqlite"
    autocommit_cure = 'connection.execute("BEGIN IMMEDIATE")'

    async def open(self, autocommit: bool = False) -> None:
        self.connection = sqlite3.connect(self.url, isolation_level=None if autocommit else "DEFERRED")


class AsyncDriver(Driver):
    """Where the same methods are to be waited for."""

    is_async = True

    async def run(self, sql: str) -> None:
        await self.connection.execute(sql)

    async def value(self, sql: str) -> Any:
        return (await (await self.connection.execute(sql)).fetchone())[0]

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def close(self) -> None:
        await self.connection.close()


class AioSqlite(AsyncDriver):
    dialect = "sqlite"
    autocommit_cure = 'connection.execute("BEGIN IMMEDIATE")'

    async def open(self, autocommit: bool = False) -> None:
        self.connection = await aiosqlite.connect(self.url, isolation_level=None if autocommit else "DEFERRED")


class Psycopg(Driver):
    autocommit_cure = "with connection.transaction(): …"

    async def open(self, autocommit: bool = False) -> None:
        self.connection = psycopg.connect(self.url, autocommit=autocommit)


class AsyncPsycopg(AsyncDriver):
    autocommit_cure = "async with connection.transaction(): …"

    async def open(self, autocommit: bool = False) -> None:
        self.connection = await psycopg.AsyncConnection.connect(self.url, autocommit=autocommit)


class Psycopg2(Driver):
    autocommit_cure = "connection.autocommit = False"

    async def open(self, autocommit: bool = False) -> None:
        self.connection = psycopg2.connect(self.url)
        self.connection.autocommit = autocommit

    async def run(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    async def value(self, sql: str) -> Any:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0]


class AsyncPg(AsyncDriver):
    """It begins nothing by itself."""

    autocommit_cure = "async with connection.transaction(): …"

    async def open(self, autocommit: bool = False) -> None:
        self.connection = await asyncpg.connect(self.url)

    async def begin(self) -> None:
        self.transactions = [self.connection.transaction()]
        await self.transactions[-1].start()

    async def value(self, sql: str) -> Any:
        return await self.connection.fetchval(sql)

    async def savepoint(self) -> None:
        self.transactions.append(self.connection.transaction())
        await self.transactions[-1].start()

    async def back_to_savepoint(self) -> None:
        await self.transactions.pop().rollback()

    async def commit(self) -> None:
        await self.transactions.pop().commit()

    async def rollback(self) -> None:
        await self.transactions.pop().rollback()

    async def close(self) -> None:
        await self.connection.close(timeout=5)


class AsyncPgOfAPool(AsyncPg):
    """One that a pool lends."""

    async def open(self, autocommit: bool = False) -> None:
        self.pool = await asyncpg.create_pool(self.url, min_size=1, max_size=1)
        self.connection = await self.pool.acquire()

    async def close(self) -> None:
        self.pool.terminate()


class OfSqlAlchemy(Driver):
    """What its Connection and its Session have in common."""

    scheme = "postgresql+psycopg"
    autocommit_cure = 'Take a connection whose isolation_level is not "AUTOCOMMIT"'

    @property
    def sqlalchemy_url(self) -> str:
        return sqlalchemy_url(self.scheme, self.url)

    async def run(self, sql: str) -> None:
        self.connection.execute(sqlalchemy.text(sql))

    async def value(self, sql: str) -> Any:
        return self.connection.execute(sqlalchemy.text(sql)).scalar()

    async def savepoint(self) -> None:
        self.nested = self.connection.begin_nested()

    async def back_to_savepoint(self) -> None:
        self.nested.rollback()

    async def close(self) -> None:
        with suppress(Exception):
            self.connection.close()
        self.engine.dispose()


class CoreConnection(OfSqlAlchemy):
    async def raw(self) -> Any:
        return self.connection.connection.driver_connection

    async def open(self, autocommit: bool = False) -> None:
        self.engine = sqlalchemy.create_engine(self.sqlalchemy_url)
        self.connection = self.engine.connect()
        if autocommit:
            self.connection = self.connection.execution_options(isolation_level="AUTOCOMMIT")


class OrmSession(OfSqlAlchemy):
    async def raw(self) -> Any:
        return self.connection.connection().connection.driver_connection

    async def open(self, autocommit: bool = False) -> None:
        level = {"isolation_level": "AUTOCOMMIT"} if autocommit else {}
        self.engine = sqlalchemy.create_engine(self.sqlalchemy_url, **level)
        self.connection = Session(self.engine)


class OfAsyncSqlAlchemy(OfSqlAlchemy, AsyncDriver):
    scheme = "postgresql+asyncpg"

    async def run(self, sql: str) -> None:
        await self.connection.execute(sqlalchemy.text(sql))

    async def value(self, sql: str) -> Any:
        return (await self.connection.execute(sqlalchemy.text(sql))).scalar()

    async def savepoint(self) -> None:
        self.nested = await self.connection.begin_nested()

    async def back_to_savepoint(self) -> None:
        await self.nested.rollback()

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def close(self) -> None:
        with suppress(Exception):
            await self.connection.close()
        await self.engine.dispose()


class AsyncCoreConnection(OfAsyncSqlAlchemy):
    async def raw(self) -> Any:
        return (await self.connection.get_raw_connection()).driver_connection

    async def open(self, autocommit: bool = False) -> None:
        self.engine = create_async_engine(self.sqlalchemy_url)
        self.connection = await self.engine.connect()
        if autocommit:
            await self.connection.execution_options(isolation_level="AUTOCOMMIT")


class AsyncOrmSession(OfAsyncSqlAlchemy):
    async def raw(self) -> Any:
        return (await (await self.connection.connection()).get_raw_connection()).driver_connection

    async def open(self, autocommit: bool = False) -> None:
        level = {"isolation_level": "AUTOCOMMIT"} if autocommit else {}
        self.engine = create_async_engine(self.sqlalchemy_url, **level)
        self.connection = AsyncSession(self.engine)


class Django(Driver):
    engine = "django.db.backends.postgresql"
    autocommit_cure = "with transaction.atomic(using='shop'): …"
    options: ClassVar[dict[str, Any]] = {}

    async def open(self, autocommit: bool = False) -> None:
        connections.settings["shop"] = connections.settings["default"] | self.settings()
        self.connection = connections["shop"]

    def settings(self) -> dict[str, Any]:
        parts = psycopg.conninfo.conninfo_to_dict(self.url)
        names = {"NAME": "dbname", "HOST": "host", "PORT": "port", "USER": "user"}
        return {"ENGINE": self.engine, "OPTIONS": self.options} | {name: parts[part] for name, part in names.items()}

    async def raw(self) -> Any:
        return self.connection.connection

    async def begin(self) -> None:
        self.atomic = transaction.atomic(using="shop")
        self.atomic.__enter__()

    async def run(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    async def value(self, sql: str) -> Any:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0]

    async def savepoint(self) -> None:
        self.nested = transaction.atomic(using="shop")
        self.nested.__enter__()

    async def back_to_savepoint(self) -> None:
        self.nested.__exit__(KeyError, KeyError("an accident"), None)

    async def commit(self) -> None:
        self.atomic.__exit__(None, None, None)

    async def rollback(self) -> None:
        self.atomic.__exit__(KeyError, KeyError("an accident"), None)

    async def close(self) -> None:
        if self.connection.in_atomic_block:
            with suppress(Exception):
                await self.rollback()
        self.connection.close()
        del connections["shop"]
        connections.settings.pop("shop")


class DjangoOnSqlite(Django):
    dialect = "sqlite"
    engine = "django.db.backends.sqlite3"

    def settings(self) -> dict[str, Any]:
        return {"ENGINE": self.engine, "NAME": self.url, "OPTIONS": self.options}


class DjangoBindingOnTheServer(Django):
    options: ClassVar[dict[str, Any]] = {"server_side_binding": True}


def sqlalchemy_url(scheme: str, url: str) -> str:
    """The URL in SQLAlchemy's words."""
    if scheme.startswith("sqlite"):
        return f"{scheme}:///{url}"
    parts = psycopg.conninfo.conninfo_to_dict(url)
    return f"{scheme}://{parts['user']}@/{parts['dbname']}?host={parts['host']}&port={parts['port']}"


def on(kind: type[OfSqlAlchemy], scheme: str) -> type[OfSqlAlchemy]:
    return type(kind.__name__, (kind,), {"scheme": scheme, "dialect": scheme.partition("+")[0]})


DRIVERS: dict[str, type[Driver]] = {
    "sqlite3": Sqlite3,
    "aiosqlite": AioSqlite,
    "psycopg": Psycopg,
    "psycopg-async": AsyncPsycopg,
    "psycopg2": Psycopg2,
    "asyncpg": AsyncPg,
    "asyncpg-pool": AsyncPgOfAPool,
    "django-postgresql": Django,
    "django-binding": DjangoBindingOnTheServer,
    "django-sqlite": DjangoOnSqlite,
    **{
        f"sqlalchemy-{kind.__name__}-{scheme}": on(kind, scheme)
        for kind in (CoreConnection, OrmSession)
        for scheme in ("postgresql+psycopg", "postgresql+psycopg2", "sqlite+pysqlite")
    },
    **{
        f"sqlalchemy-{kind.__name__}-{scheme}": on(kind, scheme)
        for kind in (AsyncCoreConnection, AsyncOrmSession)
        for scheme in ("postgresql+psycopg", "postgresql+asyncpg", "sqlite+aiosqlite")
    },
}
