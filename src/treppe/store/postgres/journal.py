"""The journal on PostgreSQL: streams that are appended to, values that change by compare-and-swap.

A reader that goes on behind the last seq it saw must not miss one that is committed later with a smaller number: who
appends to a stream holds it until its commit, so that seqs become visible in their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from treppe.store.postgres.database import SQL, Database, Tx
from treppe.store.protocol import Record

MAX_PAGE = 1000


class PostgresJournal:
    """Satisfies :class:`treppe.store.protocol.Journal`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, stream: str, records: Sequence[bytes]) -> None:
        if records:
            self._database.write(lambda tx: append(tx, stream, records))

    def page(self, stream: str, after: int = 0, n: int = 100, newest_first: bool = False) -> list[Record]:
        statement = SQL["journal_page_newest" if newest_first else "journal_page"]
        return [Record(*row) for row in self._database.once(statement, (stream, after, min(n, MAX_PAGE)))]

    def trim(self, stream: str, keep: int) -> int:
        return len(self._database.once(SQL["journal_trim"], (stream, keep)))

    def drop(self, stream: str, seqs: Sequence[int]) -> int:
        return len(self._database.once(SQL["journal_drop"], (stream, list(seqs))))

    def get(self, name: str) -> bytes | None:
        rows = self._database.once(SQL["value_get"], (name,))
        return rows[0][0] if rows else None

    def swap(self, name: str, old: bytes | None, new: bytes | None) -> bool:
        return self._database.write(lambda tx: swap(tx, name, old, new))

    def scan(self, prefix: str, n: int = 1000) -> dict[str, bytes]:
        return dict(self._database.once(SQL["value_scan"], (prefix, min(n, MAX_PAGE))))


def append(tx: Tx, stream: str, records: Sequence[bytes]) -> None:
    """Append inside an open transaction, as its last step: until it ends nobody else appends to this stream.

    Reports of queues (``report:…``) are read without a cursor and need no order: those who settle insert them
    without waiting for each other.
    """
    tx.rows(SQL["journal_hold"], (stream,))
    tx.run(SQL["journal_append"], (stream, list(records)))


def swap(tx: Tx, name: str, old: bytes | None, new: bytes | None) -> bool:
    """Change a value only if it is still *old*; ``None`` stands for absent."""
    if old is None:
        if new is None:
            return not tx.rows(SQL["value_get"], (name,))
        return tx.run(SQL["value_create"], (name, new)) == 1
    if new is None:
        return tx.run(SQL["value_delete"], (name, old)) == 1
    return tx.run(SQL["value_swap"], (name, old, new)) == 1
