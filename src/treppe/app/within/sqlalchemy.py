"""SQLAlchemy 2: Session, Connection and their async twins, on PostgreSQL and SQLite.

Every statement goes through SQLAlchemy's own connection, never through the driver's: with asyncpg beneath, what is
said to the driver itself is in no transaction yet, and stays when the session rolls back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from treppe.app.within import postgres, sqlite
from treppe.app.within.home import Home
from treppe.app.within.steps import Row, Steps, carry, in_autocommit
from treppe.errors import Unsupported
from treppe.store.protocol import Plan, Put


def run(plan: Plan, connection: Any, home: Home) -> Put:
    """Carry the plan out on a Connection."""
    dialect = connection.dialect
    home.refuse_other(dialect.name)
    if dialect.paramstyle not in WRITTEN:
        raise Unsupported(f"within= cannot use SQLAlchemy with {dialect.driver}. Take psycopg, psycopg2 or asyncpg")
    write = WRITTEN[dialect.paramstyle]

    def execute(sql: str, parameters: Sequence[Any]) -> list[Row]:
        result = connection.exec_driver_sql(*write(sql, parameters), execution_options=_options(parameters))
        return postgres.plain(result.fetchall()) if result.returns_rows else []

    steps, context = (_on_sqlite if dialect.name == "sqlite" else _on_postgres)(plan, connection, home)
    with context:
        return carry(steps, execute)


def run_in_session(plan: Plan, session: Any, home: Home) -> Put:
    """Carry the plan out on the connection that the session's transaction is on."""
    return run(plan, _connection_of(session), home)


async def arun(plan: Plan, connection: Any, home: Home) -> Put:
    """Carry the plan out on an AsyncConnection."""
    put: Put = await connection.run_sync(lambda plainly: run(plan, plainly, home))
    return put


async def arun_in_session(plan: Plan, session: Any, home: Home) -> Put:
    """Carry the plan out on an AsyncSession, or the one that a scope has now."""
    session = session() if callable(session) else session
    put: Put = await session.run_sync(lambda plainly: run_in_session(plan, plainly, home))
    return put


Written = tuple[str, Any]

WRITTEN: Final[dict[str, Callable[[str, Sequence[Any]], Written]]] = {
    "qmark": lambda sql, parameters: (sql, tuple(parameters)),
    "numeric_dollar": lambda sql, parameters: (sql, tuple(parameters)),
    "pyformat": postgres.named,
}
"""How the drivers beneath want a statement's parameters."""

NO_AUTOCOMMIT: Final = 'Take a connection whose isolation_level is not "AUTOCOMMIT"'


def _options(parameters: Sequence[Any]) -> dict[str, Any]:
    """No cursor on the server, whatever the connection is set to: it takes nothing that writes."""
    return {"stream_results": False, "yield_per": None, "no_parameters": not parameters}


def _connection_of(session: Any) -> Any:
    try:
        return session.connection()
    except Exception as error:
        if type(error).__name__ == "UnboundExecutionError":
            raise Unsupported(
                "this session has a database for each model, and none for the job. "
                "Hand over the connection: within=session.connection(bind_arguments={…})"
            ) from error
        raise


def _on_postgres(plan: Plan, connection: Any, home: Home) -> tuple[Steps, AbstractContextManager[None]]:
    beneath = connection.connection
    if beneath.dbapi_connection.autocommit:
        raise in_autocommit(NO_AUTOCOMMIT)
    return postgres.checked(plan, home, beneath.driver_connection), nullcontext()


def _on_sqlite(plan: Plan, connection: Any, home: Home) -> tuple[Steps, AbstractContextManager[None]]:
    beneath = connection.connection
    driver = beneath.driver_connection
    if connection.dialect.is_async:
        autocommit = beneath.dbapi_connection.run_async(lambda one: sqlite.autocommit_of(one, one._conn))  # noqa: SLF001
    else:
        autocommit = getattr(driver, "autocommit", sqlite.LEGACY)
    steps = sqlite.guarded(plan, home.file, lambda: sqlite.beginning(driver, autocommit, NO_AUTOCOMMIT))
    return steps, sqlite.texts_as_str(driver)
