"""docs/postgresql.md: its figures are those of the store."""

import re

from tests.docs.pages import ROOT, tables
from treppe.store.postgres import listening
from treppe.store.postgres.connecting import NETWORK, OLDEST, TIMES
from treppe.store.postgres.database import MAX_CONNECTIONS, SQL

PAGE = (ROOT / "docs" / "postgresql.md").read_text("utf-8")


def test_the_time_outs_are_the_real_ones():
    (told,) = [dict(table[1:]) for table in tables(PAGE) if table[0] == ["Setting", "Value"]]
    real = {**TIMES, **NETWORK, "connect_timeout": NETWORK["connect_timeout"] * 1000}
    assert {name.strip("`"): value for name, value in told.items()} == {
        name: f"{real[name.strip('`')] // 1000} s" for name in (each.strip("`") for each in told)
    }
    assert {f"`{name}`" for name in TIMES} <= set(told)


def test_the_limits_are_the_real_ones():
    assert f"at most {MAX_CONNECTIONS} connections" in PAGE
    assert f"opens at most {MAX_CONNECTIONS + 2}" in PAGE
    assert f"{listening.MOST_A_SECOND} puts a second" in re.sub(r"\s+", " ", PAGE)
    assert f"PostgreSQL {OLDEST // 10_000} or newer" in PAGE
    assert "lock_timeout = '5s'" in SQL["schema_lock"]
    assert "waits five seconds for a lock" in PAGE


def test_all_views_and_tables_are_named():
    (step,) = (ROOT / "src/treppe/store/postgres/migrations").glob("0001_*.sql")
    made = set(re.findall(r"CREATE TABLE treppe\.(\w+)", step.read_text("utf-8"))) | {"schema"}
    assert " ".join(sorted(made)) in PAGE
