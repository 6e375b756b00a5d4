"""A store, and doors in front of it."""

import pytest

from tests.door.support import DESTINATIONS, shop
from treppe.door.webhook import Door
from treppe.intake import Batcher, Intake
from treppe.store.sqlite import SQLiteStore


@pytest.fixture(autouse=True)
def nobody_lingers(monkeypatch):
    """A refused sender gets a short moment here."""
    monkeypatch.setattr("treppe.door.body.LINGER", 0.1)


@pytest.fixture
def store(tmp_path):
    store = SQLiteStore(tmp_path / "jobs.db", durable=False)
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def batcher(store):
    batcher = Batcher(Intake(store))
    yield batcher
    batcher.close()


@pytest.fixture
def door_of(store, batcher):
    """Makes doors for one source each."""

    def make(source=None, destinations=DESTINATIONS, **options):
        source = source or shop()
        return Door({source.name: source}, destinations, options.pop("batcher", batcher), store.journal, **options)

    return make
