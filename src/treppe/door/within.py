"""Enqueue inside the caller's own transaction: the job exists exactly if that transaction commits.

The store gives statements; here they are run on whatever connection the caller holds. A connection is
recognised by the module of its type, so nothing is imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from treppe.errors import StoreError, Unsupported
from treppe.store.protocol import Plan, Put

Row = tuple[Any, ...]


def run(plan: Plan, connection: Any, file: str | None = None) -> Put:
    """Carry the plan out on a ``sqlite3`` connection. Unsupported for any other, and in autocommit.

    ``file`` is where the store's jobs are: the connection must be to the same file.
    """
    if _module(connection) != "sqlite3":
        raise Unsupported(_unknown(connection, "an async one goes with aenqueue"))
    _refuse_autocommit(connection)
    _refuse_other_file(connection.execute("PRAGMA database_list").fetchall(), file)
    return _carry_out(plan, lambda sql, values: connection.execute(sql, values).fetchall())


async def arun(plan: Plan, connection: Any, file: str | None = None) -> Put:
    """The same on an ``aiosqlite`` connection, or a plain one."""
    if _module(connection) == "sqlite3":
        return run(plan, connection, file)
    if _module(connection) != "aiosqlite":
        raise Unsupported(_unknown(connection, ""))
    _refuse_autocommit(connection)
    _refuse_other_file(await connection.execute_fetchall("PRAGMA database_list"), file)
    try:
        sql, values = next(plan)
        while True:
            sql, values = plan.send([tuple(row) for row in await connection.execute_fetchall(sql, values)])
    except StopIteration as end:
        return _answer(end)


def _carry_out(plan: Plan, execute: Callable[[str, Any], Iterable[Row]]) -> Put:
    try:
        sql, values = next(plan)
        while True:
            sql, values = plan.send([tuple(row) for row in execute(sql, values)])
    except StopIteration as end:
        return _answer(end)


def _answer(end: StopIteration) -> Put:
    answer: Put = end.value
    return answer


def _module(connection: Any) -> str:
    return type(connection).__module__.split(".")[0]


def _refuse_autocommit(connection: Any) -> None:
    commits_alone = connection.isolation_level is None and getattr(connection, "autocommit", -1) != 0
    if commits_alone and not connection.in_transaction:
        raise Unsupported(
            "this connection is in autocommit: the job would commit alone, whatever becomes of your order. "
            'Begin a transaction first: connection.execute("BEGIN IMMEDIATE")'
        )


def _refuse_other_file(databases: Iterable[Row], file: str | None) -> None:
    files = {Path(row[2]).resolve() for row in databases if row[2]}
    if file is not None and Path(file).resolve() not in files:
        shown = ", ".join(sorted(str(path) for path in files)) or "memory"
        raise StoreError(
            f"your connection is to {shown}, the jobs are in {file}. "
            "To commit together they must share one file: name yours as the store"
        )


def _unknown(connection: Any, hint: str) -> str:
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    known = "connections of sqlite3 and aiosqlite are known here"
    return f"within= cannot use a {kind}: {known}" + (f"; {hint}" if hint else "")
