"""``sqlite3`` and ``aiosqlite``, and what everything on top of them has in common.

All statements are within a savepoint: all of them happen or none, also when a call is cancelled in the middle. How
the caller's connection shapes rows and texts does not matter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from treppe.app.within.home import Home, elsewhere
from treppe.app.within.steps import Row, Steps, acarry, carry, in_autocommit
from treppe.store.protocol import Plan, Put


def run(plan: Plan, connection: Any, home: Home) -> Put:
    """Carry the plan out on a connection of ``sqlite3``."""
    home.refuse_other("sqlite")
    with texts_as_str(connection):
        cursor = connection.cursor()
        cursor.row_factory = None
        autocommit = getattr(connection, "autocommit", LEGACY)
        steps = guarded(plan, home.file, lambda: beginning(connection, autocommit))
        return carry(steps, lambda sql, values: cursor.execute(sql, values).fetchall())


async def arun(plan: Plan, connection: Any, home: Home) -> Put:
    """Carry the plan out on a connection of ``aiosqlite``."""
    home.refuse_other("sqlite")
    with texts_as_str(connection):
        cursor = await connection.cursor()
        cursor.row_factory = None

        async def execute(sql: str, values: Sequence[Any]) -> list[Row]:
            await cursor.execute(sql, values)
            rows: list[Row] = await cursor.fetchall()
            return rows

        autocommit = await autocommit_of(connection, cursor.connection)
        return await acarry(guarded(plan, home.file, lambda: beginning(connection, autocommit)), execute)


LEGACY = -1
"""``sqlite3.LEGACY_TRANSACTION_CONTROL``: what ``autocommit`` says where it says nothing (Python 3.12 and newer)."""

BEGIN_FIRST = 'Begin a transaction first: connection.execute("BEGIN IMMEDIATE")'


def guarded(plan: Plan, file: Path | None, begin: Callable[[], str]) -> Steps:
    """The plan within a savepoint, if the connection is to the file. *begin* says how to begin, see beginning().

    It is asked after the first statement, by which whatever is on top of the driver may have begun by itself.
    """
    _refuse_other_file((yield "PRAGMA database_list", ()), file)
    if statement := begin():
        yield statement, ()
    yield "SAVEPOINT treppe", ()
    try:
        put = yield from plan
        yield "RELEASE treppe", ()
    except BaseException:
        with suppress(Exception):  # SQLite may have rolled back all of it by itself: then there is nothing to undo
            yield "ROLLBACK TO treppe", ()
            yield "RELEASE treppe", ()
        raise
    return put


def beginning(connection: Any, autocommit: Any, cure: str = BEGIN_FIRST) -> str:
    """How the driver itself would begin a transaction now; empty when one is open. Unsupported where it would not."""
    if connection.in_transaction:
        return ""
    if autocommit is True or (autocommit == LEGACY and connection.isolation_level is None):
        raise in_autocommit(cure)
    return f"BEGIN {connection.isolation_level or ''}"


async def autocommit_of(connection: Any, raw: Any) -> Any:
    """What the connection that an ``aiosqlite`` one hides says of autocommit."""
    try:
        return getattr(raw, "autocommit", LEGACY)
    except sqlite3.ProgrammingError:  # it answers only in the thread it was made in
        return await connection._execute(getattr, raw, "autocommit")  # noqa: SLF001 - there is no other way into it


@contextmanager
def texts_as_str(connection: Any) -> Iterator[None]:
    """Let texts come as they are, whatever the caller set."""
    before = connection.text_factory
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = before


def _refuse_other_file(databases: list[Row], file: Path | None) -> None:
    main = next((row[2] for row in databases if row[1] == "main"), "")
    if file is not None and (not main or Path(main).resolve() != Path(file).resolve()):
        raise elsewhere(main or "a database in memory", f"in {file}")
