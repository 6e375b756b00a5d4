"""Statements enter tables that grow by their indexes, however small the tables were when they were planned."""

import psycopg
import pytest

from treppe.store.postgres import PostgresStore, plans
from treppe.testing.contract.verbs import ALICE, FOREVER, claim, finished, put_many

NOW = "extract(epoch FROM clock_timestamp())"


@pytest.fixture
def database(any_url):
    store = PostgresStore(any_url)
    store.migrate()
    store.enlist(ALICE, "alice", FOREVER)
    with psycopg.connect(any_url, autocommit=True) as connection:
        yield store, connection
    store.close()


def add(connection, n, name, due=NOW, okey=None, parked=0):
    """Many jobs at once, past the store."""
    connection.execute(
        f"""WITH j AS (
          INSERT INTO treppe.job (id, task, queue, payload, content_type, okey, priority, repeat, attempts, crashes,
                                  first_due, expires, keep, skip_dead, created_at)
          SELECT %s || i, 'app.work', 'work', 'x', 'text/plain', %s, 0, 0, 5, 3, {due}, 1e6, 1e6, false, 0
          FROM generate_series(1, %s) i RETURNING seq)
        INSERT INTO treppe.live (seq, queue, task, okey, band, due_at, run_at, repeat, attempts, max_crashes,
                                 expires_at, skip_dead, parked)
        SELECT seq, 'work', 'app.work', %s, 2, {due}, {due}, 0, 5, 3, {due} + 1e6, false, %s FROM j""",
        (name, okey, n, okey, parked),
    )


def test_new_tables_are_entered_by_their_indexes(database):
    store, _ = database
    assert plans.check(store._database) == []


def test_statistics_of_empty_tables_change_no_plan(database):
    store, connection = database
    connection.execute("VACUUM ANALYZE")
    assert plans.check(store._database) == []
    add(connection, 50_000, "job")
    assert plans.check(store._database) == []
    connection.execute("VACUUM ANALYZE")
    assert plans.check(store._database) == []


def test_scheduled_and_parked_jobs_change_no_plan(database):
    store, connection = database
    add(connection, 30_000, "later", f"{NOW} + 86400")
    add(connection, 30_000, "behind", okey="k", parked=1)
    connection.execute("ANALYZE")
    add(connection, 1000, "due")
    assert plans.check(store._database) == []


def test_a_statement_that_reads_a_whole_table_is_told(database, monkeypatch):
    store, _ = database
    monkeypatch.setattr(plans, "HOT", ("held_select", "live_lock"))
    assert plans.check(store._database) == ["held_select: reads all of the index live_pkey"]


def test_a_missing_index_is_told(database):
    store, connection = database
    connection.execute("DROP INDEX treppe.live_okey, treppe.live_due")
    told = " ".join(plans.check(store._database))
    assert "due_look: reads all of" in told
    assert "key_judge: reads all of" in told


def test_plans_made_on_empty_tables_carry_a_full_one(database):
    """The statements of a worker that started first of all are prepared, and stay as they were planned."""
    store, connection = database
    connection.execute("VACUUM ANALYZE")
    put_many(store, 1200, key="k")
    put_many(store, 1200)
    for _ in range(12):
        store.settle([finished(one) for one in claim(store, 10).claims])
    kept = store._database.write(prepared_plans)
    assert any("SKIP LOCKED" in sql for sql in kept)
    assert [fault for plan in kept.values() for fault in plans._bad_scans(plan, "claim_heads")] == []


def prepared_plans(tx):
    """Statements of this session that have a plan for good, and that plan."""
    kept = {}
    rows = tx.rows(
        "SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements WHERE generic_plans > 0"
    )
    for name, statement, parameters in rows:
        if "treppe.live" in statement:
            nulls = ", ".join(["NULL"] * parameters)
            ((plan,),) = tx.rows(f'EXPLAIN (FORMAT JSON) EXECUTE "{name}"({nulls})')
            kept[statement] = plan[0]["Plan"]
    return kept
