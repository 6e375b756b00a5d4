"""The tables: numbered scripts, each applied once, all or nothing."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from importlib import resources

from treppe.errors import SchemaMismatch
from treppe.store.protocol import Statement
from treppe.store.sqlite.database import SQL, Connection

STEPS = {
    entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
    for entry in sorted(resources.files(__package__).joinpath("migrations").iterdir(), key=lambda entry: entry.name)
    if entry.name.endswith(".sql")
}


def is_current(db: Connection) -> bool:
    """True when nothing is left to apply."""
    return _missing(_applied(db)) == []


def migrate(db: Connection) -> list[str]:
    """Apply what is missing, inside an open transaction; the names of what was applied."""
    missing = _missing(_applied(db))
    for sql, values in _statements(missing):
        db.execute(sql, values)
    return missing


def plan() -> Generator[Statement, list[tuple[object, ...]], None]:
    """The same as statements for somebody else's connection."""
    known = yield SQL["schema_exists"], ()
    applied = (yield SQL["schema_get"], ()) if known else []
    for statement in _statements(_missing([str(row[0]) for row in applied])):  # noqa: UP028 - a list takes no send()
        yield statement


def _applied(db: Connection) -> list[str]:
    if not db.execute(SQL["schema_exists"]).fetchone():
        return []
    return [step for (step,) in db.execute(SQL["schema_get"])]


def _missing(applied: list[str]) -> list[str]:
    if unknown := sorted(set(applied) - STEPS.keys()):
        raise SchemaMismatch(
            f"the tables were made by a newer Treppe ({unknown[-1]}). Install that version or a newer one"
        )
    return [step for step in STEPS if step not in applied]


def _statements(steps: list[str]) -> list[Statement]:
    if not steps:
        return []
    found: list[Statement] = [(SQL["schema_create"], ())]
    for step in steps:
        found += [(statement, ()) for statement in _split(STEPS[step])]
        found.append((SQL["schema_add"], (step, time.time())))
    return found


def _split(script: str) -> list[str]:
    """The statements of a script; ``executescript`` would commit the transaction we are in."""
    found, statement = [], ""
    for line in script.splitlines():
        statement += line.split("--")[0] + "\n"
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found
