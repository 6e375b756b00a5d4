"""Django's connections, on PostgreSQL and SQLite: ``connection``, or ``connections["alias"]``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from treppe.app.within import postgres, sqlite
from treppe.app.within.home import Home
from treppe.app.within.steps import Row, Steps, carry, in_autocommit, without_comments
from treppe.store.protocol import Plan, Put


def run(plan: Plan, connection: Any, home: Home) -> Put:
    """Carry the plan out in the ``atomic`` block that the connection is in."""
    home.refuse_other(connection.vendor)
    if connection.get_autocommit() and not connection.in_atomic_block:
        raise in_autocommit(_begin_first(connection))
    write = _with_percents if connection.vendor == "sqlite" else postgres.named

    def execute(sql: str, parameters: Sequence[Any]) -> list[Row]:
        cursor.execute(*write(sql, parameters))
        return postgres.plain(cursor.fetchall()) if cursor.description else []

    with connection.cursor() as cursor:
        steps, context = _steps(plan, connection, home)
        with context:
            return carry(steps, execute)


def _begin_first(connection: Any) -> str:
    using = "" if connection.alias == "default" else f"using={connection.alias!r}"
    return f"Begin a transaction first: with transaction.atomic({using}): …"


def _steps(plan: Plan, connection: Any, home: Home) -> tuple[Steps, AbstractContextManager[None]]:
    raw = connection.connection
    if connection.vendor != "sqlite":
        return postgres.checked(plan, home, raw), nullcontext()
    steps = sqlite.guarded(plan, home.file, lambda: sqlite.beginning(raw, sqlite.LEGACY, _begin_first(connection)))
    return steps, sqlite.texts_as_str(raw)


def _with_percents(sql: str, parameters: Sequence[Any]) -> tuple[str, Sequence[Any] | None]:
    """As Django wants it, which writes the question marks back."""
    return (without_comments(sql).replace("%", "%%").replace("?", "%s"), parameters) if parameters else (sql, None)
