"""``psycopg2``, with any cursor factory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from treppe.app.within.home import Home
from treppe.app.within.postgres import checked, named, plain
from treppe.app.within.steps import Row, carry, in_autocommit
from treppe.errors import Unsupported
from treppe.store.protocol import Plan, Put


def run(plan: Plan, connection: Any, home: Home) -> Put:
    """Carry the plan out on a connection."""
    if connection.async_:
        raise Unsupported("within= cannot use an asynchronous connection of psycopg2: it knows no transactions")
    if connection.autocommit and connection.get_transaction_status() == IDLE:
        raise in_autocommit("Begin a transaction first: connection.autocommit = False")

    def execute(sql: str, parameters: Sequence[Any]) -> list[Row]:
        cursor.execute(*named(sql, parameters))
        return plain(cursor.fetchall()) if cursor.description else []

    with connection.cursor(cursor_factory=sys.modules["psycopg2"].extensions.cursor) as cursor:
        return carry(checked(plan, home, connection), execute)


IDLE = 0
"""``TRANSACTION_STATUS_IDLE`` of libpq."""
