"""``treppe doctor`` on PostgreSQL, and what it says of the application's own commits."""

import json
import sqlite3
import sys
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from tests.cli import support
from tests.cli.conftest import Treppe
from tests.servers import Bouncer, Server
from treppe.cli import commits

IN_ORDER = "every statement that workers run finds its rows by an index"


def database_of(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def found(treppe: Treppe, name: str) -> list[dict[str, str]]:
    results = json.loads(treppe("doctor", "--json").out)["results"]
    return [result for result in results if result["name"] == name]


@pytest.fixture
def on_postgres(folder: Path, treppe_url: str) -> str:
    (folder / "treppe.toml").write_text(support.SETTINGS.replace("sqlite:///treppe.db", treppe_url))
    return treppe_url


@pytest.mark.usefixtures("on_postgres")
def test_a_good_server_is_in_order_but_for_what_our_tests_do_without(treppe: Treppe) -> None:
    ran = treppe("doctor")
    assert "ok    server: PostgreSQL 18" in ran.out
    assert f"ok    plans: {IN_ORDER}" in ran.out
    assert "is as safe as your connection's synchronous_commit = on" in ran.out
    assert "warn  durability: fsync = off, synchronous_commit = on: accepted jobs can be lost" in ran.out
    assert "fail" not in ran.out


def test_a_missing_index_is_told(treppe: Treppe, on_postgres: str) -> None:
    with psycopg.connect(on_postgres, autocommit=True) as connection:
        connection.execute("DROP INDEX treppe.live_okey")
    (plans,) = found(treppe, "plans")
    assert plans["level"] == "warn"
    assert "treppe.live" in plans["text"]


def test_roles_that_do_not_wait_for_the_disk_are_named(treppe: Treppe, on_postgres: str, postgres18: Server) -> None:
    postgres18.execute("DROP ROLE IF EXISTS careless")
    postgres18.execute("CREATE ROLE careless LOGIN")
    postgres18.execute(f"ALTER ROLE careless IN DATABASE {database_of(on_postgres)} SET synchronous_commit = off")
    try:
        assert '"careless" commits with synchronous_commit = off' in found(treppe, "commits")[0]["text"]
    finally:
        postgres18.execute("DROP OWNED BY careless", database_of(on_postgres))
        postgres18.execute("DROP ROLE careless")


def test_an_old_snapshot_is_told(treppe: Treppe, on_postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treppe.cli.doctor.OLD_SNAPSHOT", -1.0)
    with psycopg.connect(on_postgres) as theirs:
        theirs.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        theirs.execute("SELECT count(*) FROM treppe.live")
        assert "nothing is cleaned up behind it" in found(treppe, "vacuum")[0]["text"]


def test_a_pooler_in_between_is_told(folder: Path, treppe: Treppe, treppe_url: str, pgbouncer: Bouncer) -> None:
    url = pgbouncer.url(database_of(treppe_url))
    (folder / "treppe.toml").write_text(support.SETTINGS.replace("sqlite:///treppe.db", url))
    assert "a pooler is in between" in found(treppe, "wake-up")[0]["text"]
    assert found(treppe, "plans")[0]["text"] == IN_ORDER


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, ["transaction_mode"]),
        ({"transaction_mode": "immediate"}, []),
        ({"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA synchronous=NORMAL;"}, ["synchronous at FULL"]),
        ({"transaction_mode": "EXCLUSIVE", "init_command": "PRAGMA synchronous = FULL"}, []),
        (None, ["transaction_mode"]),
    ],
)
def test_the_settings_of_django_are_looked_at(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch, options: dict[str, str] | None, told: list[str]
) -> None:
    support.waiting(folder)
    of_django(
        monkeypatch,
        {
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "treppe.db", "OPTIONS": options},
            "other": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "other.db"},
            "reports": {"ENGINE": "django.db.backends.postgresql", "NAME": "reports"},
        },
    )
    warnings = [result for result in found(treppe, "commits") if result["level"] == "warn"]
    assert len(warnings) == len(told)
    for warning, words in zip(warnings, told, strict=True):
        assert 'DATABASES["default"]' in warning["text"]
        assert words in warning["cure"]


@pytest.mark.parametrize(("options", "level"), [("-c synchronous_commit=off", "warn"), ("-c jit=off", "ok")])
def test_the_settings_of_django_on_postgresql_are_looked_at(
    treppe: Treppe, on_postgres: str, monkeypatch: pytest.MonkeyPatch, options: str, level: str
) -> None:
    name = database_of(on_postgres)
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": name, "OPTIONS": {"options": options}}
    of_django(monkeypatch, {"default": database})
    assert [result["level"] for result in found(treppe, "commits")] == [level]


def of_django(monkeypatch: pytest.MonkeyPatch, databases: dict[str, dict[str, object]]) -> None:
    """As an application that has Django set up."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
    monkeypatch.setitem(sys.modules, "django.conf", SimpleNamespace(settings=SimpleNamespace(DATABASES=databases)))


def test_settings_of_django_that_cannot_be_read_are_left_alone(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch
) -> None:
    support.waiting(folder)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "there.is.no.such.module")
    (result,) = found(treppe, "commits")
    assert result["level"] == "ok"


def test_a_sqlite_that_does_not_wait_by_itself_is_told(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some builds begin every connection to such a file with NORMAL."""
    support.waiting(folder)

    class Hasty(sqlite3.Connection):
        def execute(self, sql: str, *rest: object) -> sqlite3.Cursor:
            return super().execute("SELECT 1" if sql == "PRAGMA synchronous" else sql, *rest)

    real = sqlite3.connect
    hasty = SimpleNamespace(connect=lambda *at, **how: real(*at, **how, factory=Hasty))
    monkeypatch.setattr(commits, "sqlite3", hasty)
    (result,) = found(treppe, "commits")
    assert (result["level"], result["cure"]) == ("warn", "Say PRAGMA synchronous = FULL on each connection of yours")
