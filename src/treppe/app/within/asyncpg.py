"""``asyncpg``: a connection of its own, or one that a pool lends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treppe.app.within.home import Home
from treppe.app.within.postgres import checked
from treppe.app.within.steps import Row, acarry, in_autocommit
from treppe.store.protocol import Plan, Put


async def arun(plan: Plan, connection: Any, home: Home) -> Put:
    """Carry the plan out; its way of writing parameters is the plan's own."""
    if not connection.is_in_transaction():
        raise in_autocommit("Begin a transaction first: async with connection.transaction(): …")

    async def execute(sql: str, parameters: Sequence[Any]) -> list[Row]:
        return [tuple(record) for record in await connection.fetch(sql, *parameters)]

    lent = getattr(connection, "_con", connection)  # what a pool lends is a new object each time
    return await acarry(checked(plan, home, lent), execute)
