"""The tables: numbered scripts, each applied once, all or nothing, however many processes start at the same time.

A script's number says what older versions of Treppe may do beside it: from 0002 to 0999 they go on working, 1001
they refuse.
"""

from __future__ import annotations

from importlib import resources

from treppe.errors import SchemaMismatch
from treppe.store.postgres.database import SQL, Tx

STEPS = {
    entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
    for entry in sorted(resources.files(__package__).joinpath("migrations").iterdir(), key=lambda entry: entry.name)
    if entry.name.endswith(".sql")
}


def is_current(tx: Tx) -> bool:
    """True when nothing is left to apply."""
    return _missing(_applied(tx)) == []


def migrate(tx: Tx) -> list[str]:
    """Apply what is missing, in an open transaction; the names of what was applied."""
    tx.script(SQL["schema_lock"])
    missing = _missing(_applied(tx))
    tx.script(SQL["schema_create"])
    for step in missing:
        tx.script(_script(step))
    return missing


def printed() -> str:
    """All of it as one script for psql, Alembic or a Django migration. It may be run again."""
    parts = [SQL["schema_lock"], SQL["schema_create"]]
    parts += [SQL["schema_once"].replace("$1", f"'{step}'").replace("$2", _script(step)) for step in STEPS]
    return "BEGIN;\n" + "\n".join(part.strip() for part in parts) + "\nCOMMIT;\n"


def _applied(tx: Tx) -> list[str]:
    if not tx.rows(SQL["schema_exists"]):
        return []
    return [step for (step,) in tx.rows(SQL["schema_get"])]


def _missing(applied: list[str]) -> list[str]:
    newest = max(STEPS)[0]
    if unknown := sorted(step for step in applied if step not in STEPS and step[0] > newest):
        raise SchemaMismatch(
            f"the tables were made by a newer Treppe ({unknown[-1]}). Install that version or a newer one"
        )
    return [step for step in STEPS if step not in applied]


def _script(step: str) -> str:
    added = SQL["schema_add"].replace("$1", f"'{step}'")
    return f"{STEPS[step]}\n{added}"
