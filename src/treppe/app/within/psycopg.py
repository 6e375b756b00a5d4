"""``psycopg`` 3: Connection and AsyncConnection, with any cursor factory, row factory or pipeline."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from treppe.app.within.home import Home
from treppe.app.within.postgres import checked, named
from treppe.app.within.steps import Row, acarry, carry, in_autocommit
from treppe.store.protocol import Plan, Put


def run(plan: Plan, connection: Any, home: Home) -> Put:
    """Carry the plan out on a Connection."""
    _synced(connection)
    _refuse_autocommit(connection, "with")
    cursor = _module().Cursor(connection, row_factory=_module().rows.tuple_row)

    def execute(sql: str, parameters: Sequence[Any]) -> list[Row]:
        cursor.execute(*named(sql, parameters))
        _synced(connection)
        return cursor.fetchall() if cursor.description else []

    with cursor:
        return carry(checked(plan, home, connection), execute)


async def arun(plan: Plan, connection: Any, home: Home) -> Put:
    """Carry the plan out on an AsyncConnection."""
    await _asynced(connection)
    _refuse_autocommit(connection, "async with")
    cursor = _module().AsyncCursor(connection, row_factory=_module().rows.tuple_row)

    async def execute(sql: str, parameters: Sequence[Any]) -> list[Row]:
        await cursor.execute(*named(sql, parameters))
        await _asynced(connection)
        return await cursor.fetchall() if cursor.description else []

    async with cursor:
        return await acarry(checked(plan, home, connection), execute)


def _module() -> Any:
    """The driver: whoever holds one of its connections has imported it."""
    return sys.modules["psycopg"]


def _synced(connection: Any) -> None:
    """In a pipeline nothing is known of what was sent until it is asked for."""
    if connection.info.pipeline_status:
        with connection.pipeline() as pipeline:
            pipeline.sync()


async def _asynced(connection: Any) -> None:
    if connection.info.pipeline_status:
        async with connection.pipeline() as pipeline:
            await pipeline.sync()


def _refuse_autocommit(connection: Any, word: str) -> None:
    if connection.autocommit and connection.info.transaction_status == IDLE:
        raise in_autocommit(f"Begin a transaction first: {word} connection.transaction(): …")


IDLE = 0
"""``TransactionStatus.IDLE`` of libpq."""
