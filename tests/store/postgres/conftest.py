"""Stores on a PostgreSQL of our own."""

from collections.abc import Iterator

import pytest

from tests.servers import Server
from treppe.store.postgres import PostgresStore
from treppe.testing.contract.verbs import ALICE, FOREVER


@pytest.fixture
def store(treppe_url: str) -> Iterator[PostgresStore]:
    """A store by the real clock, that knows the worker ALICE."""
    store = PostgresStore(treppe_url, connections=40)
    store.enlist(ALICE, "alice", FOREVER)
    yield store
    store.close()


@pytest.fixture(scope="session", params=["postgres15", "postgres18"])
def any_server(request: pytest.FixtureRequest) -> Server:
    """The oldest and the newest server."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def any_url(any_server: Server) -> Iterator[str]:
    """An empty database on each of them."""
    name = any_server.create()
    yield any_server.socket_url(name)
    any_server.drop(name)
