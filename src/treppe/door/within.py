"""Enqueue inside the caller's own transaction: the job exists exactly if that transaction commits.

The store gives statements; here they are run on whatever connection the caller holds, within a savepoint: all of them
happen or none, also when a call is cancelled in the middle. How the caller's connection shapes rows and texts does
not matter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from treppe.errors import StoreError, StoreUnavailable, Unsupported
from treppe.store.protocol import Plan, Put, Statement

Row = tuple[Any, ...]


def run(plan: Plan, connection: Any, file: Path | None = None) -> Put:
    """Carry the plan out on a ``sqlite3`` connection. Unsupported for any other, and in autocommit.

    ``file`` is where the store's jobs are: the connection must be to the same file. StoreUnavailable when it is
    locked for too long, StoreError for other trouble with the connection; the transaction stays as it was before.
    """
    if not isinstance(connection, sqlite3.Connection):
        raise Unsupported(_unknown(connection, "; an async one goes with aenqueue" if _is_async(connection) else ""))
    with _translated(), _texts_as_str(connection):
        cursor = connection.cursor()
        cursor.row_factory = None
        steps = _guarded(plan, file, _beginning(connection, getattr(connection, "autocommit", LEGACY)))
        try:
            statement = next(steps)
            while True:
                try:
                    rows = cursor.execute(*statement).fetchall()
                except BaseException as error:
                    statement = steps.throw(error)
                else:
                    statement = steps.send(rows)
        except StopIteration as end:
            return _answer(end)


async def arun(plan: Plan, connection: Any, file: Path | None = None) -> Put:
    """The same on an ``aiosqlite`` connection, or a plain one."""
    if not _is_async(connection):
        return run(plan, connection, file)
    with _translated(), _texts_as_str(connection):
        cursor = await connection.cursor()
        cursor.row_factory = None
        steps = _guarded(plan, file, _beginning(connection, await _autocommit_of(connection, cursor.connection)))
        try:
            statement = next(steps)
            while True:
                try:
                    await cursor.execute(*statement)
                    rows = await cursor.fetchall()
                except BaseException as error:
                    statement = steps.throw(error)
                else:
                    statement = steps.send(rows)
        except StopIteration as end:
            return _answer(end)


LEGACY = -1
"""``sqlite3.LEGACY_TRANSACTION_CONTROL``: what ``autocommit`` says where it says nothing (Python 3.12 and newer)."""


def _guarded(plan: Plan, file: Path | None, begin: str) -> Generator[Statement, list[Row], Put]:
    _refuse_other_file((yield "PRAGMA database_list", ()), file)
    if begin:
        yield begin, ()
    yield "SAVEPOINT treppe", ()
    try:
        put = yield from plan
        yield "RELEASE treppe", ()
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite may have rolled back all of it by itself: then there is nothing to undo
            yield "ROLLBACK TO treppe", ()
            yield "RELEASE treppe", ()
        raise
    return put


def _beginning(connection: Any, autocommit: Any) -> str:
    """How the driver itself would begin a transaction now; empty when one is open. Unsupported where it would not."""
    if connection.in_transaction:
        return ""
    if autocommit is True or (autocommit == LEGACY and connection.isolation_level is None):
        raise Unsupported(
            "this connection is in autocommit: the job would commit alone, whatever becomes of your order. "
            'Begin a transaction first: connection.execute("BEGIN IMMEDIATE")'
        )
    return f"BEGIN {connection.isolation_level or ''}"


async def _autocommit_of(connection: Any, raw: Any) -> Any:
    try:
        return getattr(raw, "autocommit", LEGACY)
    except sqlite3.ProgrammingError:  # it answers only in the thread it was made in
        return await connection._execute(getattr, raw, "autocommit")  # noqa: SLF001 - there is no other way into it


def _answer(end: StopIteration) -> Put:
    answer: Put = end.value
    return answer


def _is_async(connection: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == "aiosqlite" for kind in type(connection).__mro__)


def _refuse_other_file(databases: list[Row], file: Path | None) -> None:
    main = next((row[2] for row in databases if row[1] == "main"), "")
    if file is not None and (not main or Path(main).resolve() != Path(file).resolve()):
        raise StoreError(
            f"your connection is to {main or 'a database in memory'}, the jobs are in {file}. "
            "To commit together they must share one file: name yours as the store"
        )


@contextmanager
def _texts_as_str(connection: Any) -> Iterator[None]:
    before = connection.text_factory
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = before


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"your connection says: {error}") from error
    except (sqlite3.Error, ValueError) as error:  # aiosqlite's word for a closed one is ValueError
        raise StoreError(f"your connection says: {error}") from error


def _unknown(connection: Any, hint: str) -> str:
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    return (
        f"within= cannot use a {kind}: connections of sqlite3 and aiosqlite are known here{hint}. "
        "Of a library on top of them, hand over the driver's own connection"
    )
