"""What only the SQLite store has: shared commits."""

import pytest

from treppe.errors import StoreUnavailable
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
