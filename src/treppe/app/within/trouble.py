"""The errors of all drivers as ours, told apart by their SQLSTATE and by the names of their classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from treppe.errors import StoreError, StoreUnavailable, TreppeError


@contextmanager
def told() -> Iterator[None]:
    """Turn what a driver raises into StoreUnavailable or StoreError.

    A serialization failure or a deadlock stays what it is: only who began the transaction can do it anew, and looks
    for the error of the driver.
    """
    try:
        yield
    except TreppeError:
        raise
    except Exception as error:
        root = _root(error)
        state = _state(root)
        if not _is_a_drivers(error) or state.startswith(ROLLED_BACK):
            raise
        kind = StoreUnavailable if _may_pass(root, state) else StoreError
        raise kind(f"your connection says: {_text(root)}{HINTS.get(state, '')}") from error


DRIVERS: Final = {"sqlite3", "aiosqlite", "psycopg", "psycopg2", "asyncpg", "sqlalchemy", "django"}

ROLLED_BACK: Final = "40"
"""SQLSTATE class: transaction rollback."""

PASSING: Final = ("08", "53", "55", "57")
"""SQLSTATE classes: connection, resources, object not in the state it must be in (locks), operator intervention."""

HINTS: Final = {
    "25P02": ". An earlier statement of your transaction failed: roll it back, or back to a savepoint",
    "25006": ". Your transaction may only read",
    "42P01": ". Are the jobs in this database? If so, run: treppe migrate",
    "3F000": ". Are the jobs in this database? If so, run: treppe migrate",
    "42501": ". Whoever enqueues must be allowed to read and write the tables of the schema treppe",
}


def _is_a_drivers(error: BaseException | None) -> bool:
    # aiosqlite's word for a closed connection is ValueError.
    return isinstance(error, (OSError, ValueError)) or any(
        kind.__module__.partition(".")[0] in DRIVERS for kind in type(error).__mro__
    )


def _root(error: BaseException) -> BaseException:
    """What the driver itself said: SQLAlchemy keeps it as ``orig``, and shows the job's arguments in its own words."""
    beneath = getattr(error, "orig", None) or error.__cause__
    return error if beneath is None or not _is_a_drivers(beneath) else _root(beneath)


def _state(error: BaseException) -> str:
    return str(getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or "")


def _may_pass(error: BaseException, state: str) -> bool:
    operational = any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)
    return state.startswith(PASSING) or operational or isinstance(error, OSError)


def _text(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
