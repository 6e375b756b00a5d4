"""What only the SQLite store has: shared commits, walks of its upkeep."""

import pytest

from treppe.errors import StoreUnavailable
from treppe.job import NewEvent, NewJob
from treppe.store.sqlite import SQLiteStore
from treppe.store.sqlite.database import Database, _Pending


def interrupted(connection):
    raise KeyboardInterrupt


def test_who_is_interrupted_while_writing_for_others_fails_alone(tmp_path):
    database = Database(tmp_path / "jobs.db", durable=False)
    other = _Pending(lambda connection: 1)
    database._here().pending.append(other)
    with pytest.raises(KeyboardInterrupt):
        database.write(interrupted)
    assert other.done
    assert isinstance(other.error, StoreUnavailable)
    assert database.write(lambda connection: 2) == 2
    database.close()


def test_upkeep_that_has_nothing_to_do_asks_for_no_more(tmp_path):
    store = SQLiteStore(tmp_path / "jobs.db", durable=False)
    store.migrate()
    store.put([], [NewEvent("shop", f"e{n}", b"{}") for n in range(1200)])
    store.put([NewJob(f"job-{n}", "task", "q", key="k") for n in range(1200)])
    assert not store.upkeep(None).more
    store.close()
