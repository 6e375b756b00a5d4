"""The SQLite store keeps the contract."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from treppe.store.sqlite import SQLiteStore
from treppe.testing.contract import Opener, StoreContract
from treppe.testing.contract.processes import Processes
from treppe.testing.contract.reopening import Reopening


class TestSQLiteStore(StoreContract):
    def make_store(self, tmp_path, clock):
        return SQLiteStore(tmp_path / "jobs.db", clock=clock, durable=False)

    def opener(self, tmp_path):
        return Opener("treppe.store.sqlite:SQLiteStore", (str(tmp_path / "jobs.db"),))

    @contextmanager
    def connect(self, tmp_path: Path) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection


class TestSQLiteStoreOnDisk(Processes, Reopening):
    """As people run it: every answer waits for the disk."""

    def make_store(self, tmp_path, clock):
        return SQLiteStore(tmp_path / "jobs.db", clock=clock)

    opener = TestSQLiteStore.opener

    def test_it_says_that_it_survives_a_power_loss(self, store):
        assert store.can.survives_power_loss
