"""Faults that other queues had in public, of their whole kind; see ``docs/others-bugs.md`` for the list."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from treppe.store.sqlite import SQLiteStore
from treppe.testing.contract.verbs import ALICE, FOREVER, claim_ids, claim_one, finish, new_worker, put, state, upkeep


@pytest.fixture
def store(tmp_path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "jobs.db", durable=False)
    store.migrate()
    store.enlist(ALICE, "alice", FOREVER)
    yield store
    store.close()


@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_file_that_others_lock_for_a_moment_keeps_nobody_from_renewing_or_claiming(store, tmp_path, begin):
    """Heartbeats failed with "database is locked", and the living were pruned (solid_queue#309, #133)."""
    put(store, "a", "b")
    worker = new_worker(store, lease=60)
    for call in (lambda: store.renew(worker, 60), lambda: claim_ids(store, 1), lambda: put(store, f"{begin} c")):
        with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None, check_same_thread=False)) as theirs:
            theirs.execute(begin)
            timer = threading.Timer(0.2, theirs.execute, ["COMMIT"])
            timer.start()
            assert call()
            timer.join()


def test_a_reader_that_never_ends_stops_no_writer(store, tmp_path):
    put(store, "a")
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as theirs:
        theirs.execute("BEGIN")
        theirs.execute("SELECT count(*) FROM treppe_job").fetchone()
        finish(store, claim_one(store))
        put(store, "b")
        assert upkeep(store).lapsed == 0
        assert [state(store, id).value for id in "ab"] == ["done", "waiting"]
