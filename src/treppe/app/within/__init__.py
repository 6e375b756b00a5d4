"""Enqueue inside the caller's own transaction: the job exists exactly if that transaction commits.

The store gives statements; here they are run on whatever connection the caller holds, recognised by the module of its
type: nothing is imported for it. One module per family of drivers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from treppe.app.within import asyncpg, django, psycopg, psycopg2, sqlalchemy, sqlite
from treppe.app.within.home import Home, ahome_of, home_of
from treppe.app.within.trouble import told
from treppe.errors import Unsupported
from treppe.intake import Intake
from treppe.job import NewJob
from treppe.store.protocol import Plan, Put, Store


def run(store: Store, jobs: Sequence[NewJob], connection: Any) -> Put:
    """Store the jobs on a connection for plain code, in the transaction it is in.

    Unsupported for what is no such connection, and in autocommit; StoreError for one to another database than the
    store's, and for other trouble with it; StoreUnavailable for what may pass. Where the database asks for the whole
    transaction anew (a serialization failure, a deadlock), the driver's own error comes through.
    """
    kind = _kind_of(connection)
    if kind in ASYNC:
        raise Unsupported(f"a {_name(connection)} is for async code: await aenqueue(…) instead of enqueue(…)")
    if kind not in PLAIN:
        raise Unsupported(_unknown(connection))
    plan = Intake(store).plan(jobs)
    with told():
        return PLAIN[kind](plan, connection, home_of(store))


async def arun(store: Store, jobs: Sequence[NewJob], connection: Any) -> Put:
    """The same on a connection for async code."""
    kind = _kind_of(connection)
    if kind in PLAIN:
        raise Unsupported(
            f"a {_name(connection)} is for plain code, the event loop would wait for it: "
            "call enqueue(…) where you use it, instead of aenqueue(…)"
        )
    if kind not in ASYNC:
        raise Unsupported(_unknown(connection))
    plan = Intake(store).plan(jobs)
    with told():
        return await ASYNC[kind](plan, connection, await ahome_of(store))


Kind = tuple[str, str]

PLAIN: Final[dict[Kind, Callable[[Plan, Any, Home], Put]]] = {
    ("sqlite3", "Connection"): sqlite.run,
    ("psycopg", "Connection"): psycopg.run,
    ("psycopg2", "connection"): psycopg2.run,
    ("sqlalchemy", "Connection"): sqlalchemy.run,
    ("sqlalchemy", "Session"): sqlalchemy.run_in_session,
    ("sqlalchemy", "scoped_session"): sqlalchemy.run_in_session,
    ("django", "BaseDatabaseWrapper"): django.run,
    ("django", "ConnectionProxy"): django.run,
}
"""What plain code may hold: the package and the class."""

ASYNC: Final[dict[Kind, Callable[[Plan, Any, Home], Awaitable[Put]]]] = {
    ("aiosqlite", "Connection"): sqlite.arun,
    ("psycopg", "AsyncConnection"): psycopg.arun,
    ("asyncpg", "Connection"): asyncpg.arun,
    ("asyncpg", "PoolConnectionProxy"): asyncpg.arun,
    ("sqlalchemy", "AsyncConnection"): sqlalchemy.arun,
    ("sqlalchemy", "AsyncSession"): sqlalchemy.arun_in_session,
    ("sqlalchemy", "async_scoped_session"): sqlalchemy.arun_in_session,
}
"""What async code may hold."""


def _kind_of(connection: Any) -> Kind | None:
    # Not type(): tracing libraries and frameworks hand out proxies that give their true class here.
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in connection.__class__.__mro__]
    return next((kind for kind in kinds if kind in PLAIN or kind in ASYNC), None)


def _name(connection: Any) -> str:
    return f"{connection.__class__.__module__}.{connection.__class__.__qualname__}"


def _unknown(connection: Any) -> str:
    return (
        f"within= cannot use a {_name(connection)}. Hand over a connection of sqlite3, aiosqlite, psycopg, psycopg2 or "
        "asyncpg, a Session or Connection of SQLAlchemy, or one of Django's connections: the one your transaction is on"
    )
