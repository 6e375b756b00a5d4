"""What ``treppe doctor`` says of commits that are not ours: with ``within=`` the application's connection decides."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from treppe.cli.house import House
from treppe.errors import ConfigError
from treppe.store.protocol import Store

Level = Literal["ok", "warn", "fail"]


class Result(msgspec.Struct, frozen=True):
    """One line of the report."""

    level: Level
    name: str
    text: str
    cure: str = ""


NAME: Final = "commits"
FULL: Final = 2
"""``PRAGMA synchronous``: every commit waits for the disk."""

_NOT_FULL: Final = re.compile(r"synchronous\s*=\s*(normal|off|[01])\b", re.IGNORECASE)
_OFF: Final = re.compile(r"synchronous_commit\s*=\s*(off|false|no|0)\b", re.IGNORECASE)
_AT_ONCE: Final = ("IMMEDIATE", "EXCLUSIVE")


def examine(house: House, store: Store) -> Iterator[Result]:
    """How safe a job is that is enqueued in a transaction of the application, as far as that can be seen from here."""
    with suppress(ConfigError):  # told under settings
        _ = house.app  # what it imports may set Django up
    path = getattr(store, "path", None)
    warnings = list(_on_sqlite(Path(path)) if path else _on_postgres(store))
    setting = "PRAGMA synchronous = FULL" if path else "synchronous_commit = on"
    text = f"a job in your own transaction (within=) is as safe as your connection's {setting}"
    yield from warnings or [Result("ok", NAME, text)]


def _on_sqlite(file: Path) -> Iterator[Result]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as plain:
        ((level,),) = plain.execute("PRAGMA synchronous")
    if level < FULL:
        text = "this SQLite does not wait for the disk by itself: what your own transactions enqueue can be lost"
        yield Result("warn", NAME, text, "Say PRAGMA synchronous = FULL on each connection of yours")
    for alias, database in _django("sqlite3"):
        if Path(database["NAME"]).resolve() == file.resolve():
            yield from _django_on_sqlite(f'DATABASES["{alias}"]', database.get("OPTIONS") or {})


def _django_on_sqlite(place: str, options: Mapping[str, Any]) -> Iterator[Result]:
    if str(options.get("transaction_mode")).upper() not in _AT_ONCE:
        text = f'{place}: a transaction that reads first may fail with "database is locked", however long it waits'
        yield Result("warn", NAME, text, 'Add "transaction_mode": "IMMEDIATE" to its OPTIONS (Django 5.1 or newer)')
    if _NOT_FULL.search(str(options.get("init_command", ""))):
        text = f"{place}: its commits do not wait for the disk: a power cut may take orders and their jobs"
        yield Result("warn", NAME, text, "Leave PRAGMA synchronous at FULL in its init_command")


def _on_postgres(store: Store) -> Iterator[Result]:
    from psycopg.conninfo import conninfo_to_dict

    ours = conninfo_to_dict(getattr(store, "url", "")).get("dbname")
    for alias, database in _django("postgresql"):
        if database.get("NAME") == ours and _OFF.search(str((database.get("OPTIONS") or {}).get("options", ""))):
            text = (
                f'DATABASES["{alias}"]: synchronous_commit = off: a crash of the server may take orders and their jobs'
            )
            yield Result(
                "warn", NAME, text, "Leave it on, or SET LOCAL synchronous_commit = on where jobs are enqueued"
            )


def _django(engine: str) -> list[tuple[str, dict[str, Any]]]:
    """The databases of this kind, where the application uses Django."""
    if "django" not in sys.modules and "DJANGO_SETTINGS_MODULE" not in os.environ:
        return []
    try:
        databases = import_module("django.conf").settings.DATABASES
    except Exception:  # whatever its settings raise: they are not ours to judge
        return []
    return [(alias, each) for alias, each in databases.items() if each.get("ENGINE", "").endswith(f".{engine}")]
