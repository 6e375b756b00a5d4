"""Where the jobs are, so that a connection to another database can be refused: there they would commit alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from treppe.app.within.steps import Row
from treppe.errors import StoreError, Unsupported
from treppe.store.protocol import Store

PLACE = """
SELECT current_database()::text, d.oid::bigint, n.oid::bigint, n.xmin::text, obj_description(n.oid, 'pg_namespace')
FROM pg_catalog.pg_database d LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = 'treppe'
WHERE d.datname = current_database()
"""
"""Asks PostgreSQL which database this is, and which schema of Treppe's. Anybody may read the catalogs.

Addresses would not tell: a pooler or a proxy may be in between, and call the database by another name.
"""


class Home(msgspec.Struct, frozen=True):
    """Where the jobs are: in a file (None if not known), or in the PostgreSQL database behind a URL."""

    file: Path | None = None
    url: str = ""

    def refuse_other(self, dialect: str) -> None:
        """StoreError when the caller's connection is to another kind of database."""
        if dialect not in DATABASES:
            raise Unsupported(f"within= cannot use a connection to {dialect}: Treppe has no store there")
        if dialect != ("postgresql" if self.url else "sqlite"):
            raise elsewhere(DATABASES[dialect], "in PostgreSQL" if self.url else f"in {self.file}")

    def place(self, again: bool = False) -> Row:
        """What the jobs' own database answers to PLACE. It is asked once a process, or *again*."""
        if again or self.url not in _places:
            _places[self.url] = _ask(self.url)
        return _places[self.url]


DATABASES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}


def home_of(store: Store) -> Home:
    """Where a store keeps its jobs."""
    path = getattr(store, "path", None)
    return Home(None if path is None else Path(path), getattr(store, "url", ""))


async def ahome_of(store: Store) -> Home:
    """The same for an event loop, which never waits for the jobs' database afterwards."""
    home = home_of(store)
    if home.url and home.url not in _places:
        await asyncio.to_thread(home.place)
    return home


def elsewhere(theirs: object, ours: object) -> StoreError:
    """The error for a connection that could not commit the jobs."""
    return StoreError(
        f"your connection is to {theirs}, the jobs are {ours}. "
        "To commit together they must share one database: name yours as the store"
    )


_places: dict[str, Row] = {}


def _ask(url: str) -> Row:
    from treppe.store.postgres.database import Database

    database = Database(url)
    try:
        return database.once(PLACE)[0]
    finally:
        database.close()
