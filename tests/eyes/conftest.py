"""A store, its figures and a served board for every test that asks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from tests.eyes.support import PACER, SETTINGS, Visitor, served
from treppe.eyes.board import board
from treppe.eyes.measure import Figures
from treppe.store.protocol import Store
from treppe.store.sqlite import SQLiteStore
from treppe.testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    store = SQLiteStore(tmp_path / "jobs.db", clock=clock, durable=False)
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def figures(store: Store, clock: ManualClock) -> Figures:
    return Figures(store, PACER, clock=clock)


class Switch:
    """One server for the session; each test puts its own application behind it."""

    app: Any
    port: int

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@pytest.fixture(scope="session")
def switch() -> Iterator[Switch]:
    switch = Switch()
    switch.app = Starlette(routes=[Route("/board/", lambda request: PlainTextResponse("warm"))])
    with served(switch) as switch.port:
        assert Visitor(switch.port).get().text == "warm"  # starts the thread that all later requests run in
        yield switch


@pytest.fixture
def port(switch: Switch, store: Store, figures: Figures, clock: ManualClock) -> int:
    """The port of a served board, mounted at /board."""
    switch.app = Starlette(routes=[Mount("/board", board(store, SETTINGS, figures, clock=clock))])
    return switch.port


@pytest.fixture
def stranger(port: int) -> Visitor:
    return Visitor(port)


@pytest.fixture
def olga(port: int) -> Visitor:
    """An operator who has logged in."""
    visitor = Visitor(port)
    assert visitor.log_in().status == 303
    return visitor


@pytest.fixture
def vera(port: int) -> Visitor:
    """A viewer who has logged in."""
    visitor = Visitor(port)
    assert visitor.log_in("vera", "onlylooking").status == 303
    return visitor
