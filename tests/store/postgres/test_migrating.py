"""The tables: made once, whoever starts; printed for those who make them otherwise."""

import subprocess
import threading

import psycopg
import pytest
from click.testing import CliRunner

from treppe.cli.root import root
from treppe.errors import SchemaMismatch, StoreBusy, StoreError
from treppe.job import NewJob
from treppe.store.postgres import PostgresStore, migrating

ALL = list(migrating.STEPS)


@pytest.fixture
def empty(postgres_url):
    store = PostgresStore(postgres_url)
    yield store
    store.close()


def test_of_many_that_start_at_the_same_time_one_makes_the_tables(postgres_url):
    stores = [PostgresStore(postgres_url) for _ in range(8)]
    start, applied = threading.Barrier(len(stores)), []

    def migrate(store):
        store._database.once("SELECT to_regclass('treppe.schema'), to_regnamespace('treppe')")  # remembered wrongly
        start.wait(20)
        applied.append(store.migrate())

    threads = [threading.Thread(target=migrate, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for store in stores:
        store.close()
    assert sorted(applied) == sorted([ALL] + [[]] * 7)


def test_a_second_time_there_is_nothing_to_do(empty):
    assert empty.migrate() == ALL
    assert empty.migrate() == []


def test_a_step_that_fails_leaves_nothing_behind(empty, monkeypatch):
    monkeypatch.setitem(migrating.STEPS, "0999_broken", "CREATE TABLE treppe.half (); SELECT 1 / 0;")
    with pytest.raises(StoreError, match="division by zero"):
        empty.migrate()
    assert empty._database.once("SELECT 1 FROM pg_namespace WHERE nspname = 'treppe'") == []


def test_a_step_of_a_newer_version_that_only_adds_is_lived_with(empty):
    empty.migrate()
    empty._database.once("INSERT INTO treppe.schema (step) VALUES ('0998_more')")
    assert empty.migrate() == []


def test_a_newer_version_with_other_tables_is_refused(empty):
    empty.migrate()
    empty._database.once("INSERT INTO treppe.schema (step) VALUES ('1001_other')")
    with pytest.raises(SchemaMismatch, match=r"made by a newer Treppe \(1001_other\)"):
        empty.migrate()


def test_a_new_step_waits_for_nobody_for_long(empty, postgres_url, monkeypatch):
    empty.migrate()
    monkeypatch.setitem(migrating.STEPS, "0999_more", "ALTER TABLE treppe.value ADD COLUMN more text;")
    monkeypatch.setitem(migrating.SQL, "schema_lock", migrating.SQL["schema_lock"].replace("5s", "100ms"))
    with psycopg.connect(postgres_url) as report:
        report.execute("SELECT * FROM treppe.value")
        with pytest.raises(StoreBusy):
            empty.migrate()
    assert empty.migrate() == ["0999_more"]


def test_a_role_that_may_use_the_schema_but_make_none_can_start(postgres18, postgres_url, empty):
    empty.migrate()
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    postgres18.execute("DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN")
    postgres18.execute("GRANT USAGE ON SCHEMA treppe TO clerk", name)
    postgres18.execute("GRANT ALL ON ALL TABLES IN SCHEMA treppe TO clerk", name)
    postgres18.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA treppe TO clerk", name)
    store = PostgresStore(postgres_url.replace("postgres@", "clerk@"))
    assert store.migrate() == []
    store.put([NewJob("a", "t", "q")])
    assert store.backlog().accepted == 1
    store.close()
    postgres18.execute("DROP OWNED BY clerk", name)
    postgres18.execute("DROP ROLE clerk")


def test_the_printed_script_makes_the_same_tables_and_may_be_run_again(postgres18, postgres_url, empty):
    printed = CliRunner().invoke(root, ["sql"])
    assert printed.exit_code == 0
    for _ in range(2):
        subprocess.run(
            [postgres18.programs / "psql", postgres_url, "-X", "-q", "-v", "ON_ERROR_STOP=1"],
            input=printed.stdout, text=True, check=True, capture_output=True,
        )  # fmt: skip
    assert empty.migrate() == []
    empty.put([NewJob("a", "t", "q")])
    assert empty.get("a").id == "a"


def test_the_script_runs_in_a_migration_of_others_too(postgres_url, empty):
    """Alembic and Django bring a transaction of their own; BEGIN and COMMIT are left to them."""
    script = migrating.printed().removeprefix("BEGIN;\n").removesuffix("COMMIT;\n")
    with psycopg.connect(postgres_url) as theirs:
        theirs.execute(script)
    assert empty.migrate() == []


def test_jobs_can_be_looked_at_with_plain_sql(empty, postgres_url):
    empty.migrate()
    empty.put([NewJob("a", "t", "q", key="k", deadline=60)])
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT id, state, key, deadline_at - due_at FROM treppe.seen").fetchone()
    assert row[:3] == ("a", "waiting", "k")
    assert row[3].total_seconds() == pytest.approx(60)
