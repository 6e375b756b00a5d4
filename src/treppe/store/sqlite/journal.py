"""The journal on SQLite: streams that are appended to, values that change by compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treppe.store.protocol import Record
from treppe.store.sqlite.database import SQL, Connection, Database

MAX_PAGE = 1000


class SQLiteJournal:
    """Satisfies :class:`treppe.store.protocol.Journal`."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    def append(self, stream: str, records: Sequence[bytes]) -> None:
        now = self._now()
        self._database.write(lambda db: append(db, stream, records, now))

    def page(self, stream: str, after: int = 0, n: int = 100, newest_first: bool = False) -> list[Record]:
        statement = SQL["journal_page_newest" if newest_first else "journal_page"]
        rows = self._database.read(lambda db: db.execute(statement, (stream, after, min(n, MAX_PAGE))).fetchall())
        return [Record(*row) for row in rows]

    def trim(self, stream: str, keep: int) -> int:
        return self._database.write(lambda db: db.execute(SQL["journal_trim"], (stream, keep)).rowcount)

    def drop(self, stream: str, seqs: Sequence[int]) -> int:
        rows = [(stream, seq) for seq in seqs]
        return self._database.write(lambda db: db.executemany(SQL["journal_drop"], rows).rowcount)

    def get(self, name: str) -> bytes | None:
        return self._database.read(lambda db: value_of(db, name))

    def swap(self, name: str, old: bytes | None, new: bytes | None) -> bool:
        return self._database.write(lambda db: swap(db, name, old, new))

    def scan(self, prefix: str, n: int = 1000) -> dict[str, bytes]:
        bounds = (prefix, prefix + "\U0010ffff", min(n, MAX_PAGE))
        return dict(self._database.read(lambda db: db.execute(SQL["value_scan"], bounds).fetchall()))


def append(db: Connection, stream: str, records: Sequence[bytes], now: float) -> None:
    """Append inside a transaction that is already open."""
    db.executemany(SQL["journal_append"], [(stream, now, record) for record in records])


def value_of(db: Connection, name: str) -> bytes | None:
    """One value, inside an open transaction."""
    row = db.execute(SQL["value_get"], (name,)).fetchone()
    return None if row is None else bytes(row[0])


def swap(db: Connection, name: str, old: bytes | None, new: bytes | None) -> bool:
    """Change a value only if it is still *old*; ``None`` stands for absent."""
    if old is None:
        if new is None:
            return value_of(db, name) is None
        return db.execute(SQL["value_create"], (name, new)).rowcount == 1
    if new is None:
        return db.execute(SQL["value_delete"], (name, old)).rowcount == 1
    return db.execute(SQL["value_swap"], (name, old, new)).rowcount == 1
