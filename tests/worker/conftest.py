from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.support import LEASE
from treppe.store.sqlite import SQLiteStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def store(file: Path) -> Iterator[SQLiteStore]:
    """By the real clock, with a short lease."""
    store = SQLiteStore(file, durable=False)
    store.lease = LEASE
    store.migrate()
    yield store
    store.close()
