"""What the Friday's jobs lie on: a file in its folder, a PostgreSQL server of its own, or one of yours."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from treppe.demo.postgres import NoServer, Server, any_server
from treppe.demo.processes import Failed

SQLITE, POSTGRES = "sqlite", "postgres"
YOURS: Final = ("postgresql://", "postgres://")


class Ground(Protocol):
    """A store that is there as long as the run."""

    url: str

    async def restart(self) -> None:
        """Stop the store and start it again; :class:`Failed` where it is not ours."""


@contextlib.contextmanager
def open_ground(wanted: str, folder: Path, keep: bool) -> Iterator[Ground]:
    """The store that *wanted* names; what was made for the run is removed afterwards, unless *keep*."""
    if wanted == SQLITE:
        yield File(folder)
    elif wanted == POSTGRES:
        with _own_server() as server:
            yield Own(server)
    else:
        with _yours(wanted, keep):
            yield Yours(wanted)


class File:
    """A SQLite file."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'friday.db'}"

    async def restart(self) -> None:
        raise Failed("a file cannot be restarted")


class Own:
    """A PostgreSQL server of the demo's own."""

    def __init__(self, server: Server) -> None:
        self.url = server.url()
        self._server = server

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.restart)


class Yours:
    """A PostgreSQL server of somebody else's."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def restart(self) -> None:
        raise Failed("a server of yours is not ours to restart")


@contextlib.contextmanager
def _own_server() -> Iterator[Server]:
    try:
        server = any_server()
    except NoServer as error:
        raise Failed(str(error)) from None
    try:
        server.start()
        yield server
    except NoServer as error:
        raise Failed(str(error)) from None
    finally:
        server.remove()


@contextlib.contextmanager
def _yours(url: str, keep: bool) -> Iterator[None]:
    """Nothing of yours is touched: the schema must be new, and is gone afterwards."""
    if _done(url, "SELECT FROM pg_namespace WHERE nspname = 'treppe'"):
        raise Failed("this database has a schema named treppe already. Name an empty one: createdb friday")
    try:
        yield
    finally:
        if not keep:
            _done(url, "DROP SCHEMA IF EXISTS treppe CASCADE")


def _done(url: str, sql: str) -> int:
    """How many rows the statement found."""
    try:
        import psycopg
    except ImportError:
        raise Failed('PostgreSQL needs its driver. Run: pip install "treppe[postgres]"') from None
    try:
        with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
            return connection.execute(sql.encode()).rowcount
    except psycopg.Error as error:
        raise Failed(f"the database does not let us in: {str(error).strip()}") from None
