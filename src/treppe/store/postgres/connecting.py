"""Connections to PostgreSQL: how they are made, what they wait for, and what their errors mean."""

from __future__ import annotations

import re
import select
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.types.bool import BoolBinaryDumper
from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper
from psycopg.types.string import BytesBinaryDumper, StrBinaryDumper

from treppe.errors import StoreBusy, StoreError, StoreUnavailable, TreppeError
from treppe.store.postgres.arrays import ListDumper

Connection = psycopg.Connection[tuple[Any, ...]]

OLDEST = 150_000
APPLICATION = "treppe"
TIMES = {"statement_timeout": 30_000, "lock_timeout": 10_000, "idle_in_transaction_session_timeout": 60_000}
"""Milliseconds."""

LIMITS = "SELECT " + ", ".join(f"set_config('{name}', '{milliseconds}', true)" for name, milliseconds in TIMES.items())
"""Behind a pooler, which takes no settings from who connects, every transaction limits itself."""

SETTINGS = TIMES | {
    "jit": "off",
    **{f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "mergejoin", "sort")},
}
"""A statement is prepared once and then runs for weeks. Planned while the tables are small it would read all of them
for ever, so where an index serves there is no choice. Behind a pooler nothing is prepared, and so nothing is stale."""

_WAYS = [name for name in SETTINGS if name.startswith("enable_")]

PLAN_FREELY = "; ".join(f"SET LOCAL {name} = on" for name in _WAYS)
"""For reports over whole tables."""

PLAN_STRICTLY = "; ".join(f"SET LOCAL {name} = off" for name in _WAYS)
"""What every connection begins with where nothing is in between."""

NETWORK = {  # psycopg's defaults hang for minutes on a half-open connection
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
MAX_PREPARED = 300


def connect(url: str) -> Connection:
    """A new connection in autocommit: transactions are begun by statements."""
    given = conninfo_to_dict(url)
    options = " ".join([str(given.get("options") or ""), *(f"-c {name}={value}" for name, value in SETTINGS.items())])
    wanted = {"application_name": APPLICATION} | NETWORK | given
    try:
        connection = _open(wanted | {"options": options.strip()})
    except psycopg.OperationalError as error:
        if "unsupported startup parameter" not in str(error):
            raise
        connection = _open(wanted)  # PgBouncer
    if connection.info.server_version < OLDEST:
        version = connection.info.server_version // 10_000
        connection.close()
        raise StoreError(f"{shown(url)}: PostgreSQL {version} is too old: Treppe needs 15 or newer")
    if _is_passed_on(connection):
        connection.prepare_threshold = None  # the next statement may run on another server process
    return connection


def is_pooled(connection: Connection) -> bool:
    """True for a connection of :func:`connect` that goes through a pooler such as PgBouncer."""
    return connection.prepare_threshold is None


def is_idle(connection: Connection) -> bool:
    """True where no transaction is open, and the connection is not known to be broken."""
    return connection.info.transaction_status is TransactionStatus.IDLE


def is_usable(connection: Connection) -> bool:
    """False when the server has hung up on an idle connection. Asks nobody."""
    if not is_idle(connection):
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)  # nothing is ever said to an idle connection, but that it is over


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except TreppeError:
        raise
    except psycopg.Error as error:
        raise _translated(url, error) from error


def shown(url: str) -> str:
    """The database as it may be written down: without the password.

    >>> shown("postgresql://ada:secret@db.example:5433/shop?sslmode=require")
    'postgresql://ada@db.example:5433/shop'
    """
    given = conninfo_to_dict(url)
    user, host, port = (given.get(name) for name in ("user", "host", "port"))
    who = f"{user}@" if user else ""
    where = "" if host is None else str(host) + (f":{port}" if port else "")
    return f"postgresql://{who}{where}/{given.get('dbname', '')}"


def _is_passed_on(connection: Connection) -> bool:
    """True when the server process is not the one that we were promised."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid


def _open(wanted: dict[str, Any]) -> Connection:
    connection = psycopg.Connection.connect(
        autocommit=True, cursor_factory=psycopg.RawCursor, context=_types(), **wanted
    )
    connection.prepared_max = MAX_PREPARED
    return connection


@cache
def _types() -> AdaptersMap:
    """One type of the server for each of ours, in binary: a statement is planned once, and arrays cost little."""
    types = AdaptersMap(psycopg.adapters)
    for cls, dumper in (
        (int, Int8BinaryDumper),
        (float, FloatBinaryDumper),
        (str, StrBinaryDumper),
        (bytes, BytesBinaryDumper),
        (bool, BoolBinaryDumper),
        (list, ListDumper),
    ):
        types.register_dumper(cls, dumper)
    return types


def _translated(url: str, error: psycopg.Error) -> StoreError:
    text = " ".join(str(error).split()) or type(error).__name__
    where = shown(url)
    if isinstance(error, (pg.UndefinedTable, pg.InvalidSchemaName, pg.UndefinedColumn, pg.UndefinedFunction)):
        return StoreError(f"{where}: {text}. Run: treppe migrate")
    if isinstance(error, pg.InsufficientPrivilege):
        return StoreError(f"{where}: {text}. Let the owner of the tables grant what is missing, see docs/postgresql.md")
    if missing := re.search(r'database "([^"]+)" does not exist', text):
        text = f"{text}. Make it: createdb {missing[1]}"
    if isinstance(error, pg.LockNotAvailable):
        return StoreBusy(f"{where}: another transaction is in the way. Try again when it has ended ({text})")
    if _may_pass(error):
        return StoreUnavailable(f"{where}: {text}")
    return StoreError(f"{where}: {text}")


_PASSING = ("08", "25006", "25P03", "40", "53", "55", "57", "58")
"""SQLSTATEs that may pass: no connection, a standby, conflicts, out of something, locks, shutting down, disk."""


def _may_pass(error: psycopg.Error) -> bool:
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_PASSING)
    return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
