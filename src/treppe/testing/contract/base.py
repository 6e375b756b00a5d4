"""What every theme of the contract stands on: how a store is made, opened again, and opened elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.verbs import ALICE, BOB, FOREVER

Clock = Callable[[], float]
Open = Callable[[], Store]


class Opener(msgspec.Struct, frozen=True):
    """How another process opens the store: ``module:callable`` and JSON values to call it with.

    >>> Opener("treppe.store.sqlite:SQLiteStore", ("/tmp/jobs.db",)).target
    'treppe.store.sqlite:SQLiteStore'
    """

    target: str
    arguments: tuple[Any, ...] = ()


class Connection(Protocol):
    """A caller's own database connection: all the contract needs of it."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


class Contract:
    """One theme of the contract. Subclass :class:`~treppe.testing.contract.StoreContract`, which has all themes."""

    def make_store(self, tmp_path: Path, clock: Clock) -> Store:
        """Open the store that lives under *tmp_path* (or under a name made from it), and make it if it is new.

        Called again with the same path, it must open the same jobs. All times come from *clock*.
        """
        raise NotImplementedError("a contract needs make_store(self, tmp_path, clock) that opens the store to judge")

    def opener(self, tmp_path: Path) -> Opener | None:
        """How another process opens the same store, by the real clock; None when only one process may have it."""
        return None

    def connect(self, tmp_path: Path) -> AbstractContextManager[Connection]:
        """A caller's own connection with an open transaction, for stores with ``can.within``."""
        raise NotImplementedError("a store that can enqueue within the caller's transaction needs connect()")

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The store's clock; it stands still."""
        return ManualClock()

    @pytest.fixture
    def open_store(self, tmp_path: Path, clock: ManualClock) -> Iterator[Callable[..., Store]]:
        """Open the store once more, by *clock* or another one; all are closed in the end."""
        opened: list[Store] = []

        def open_it(by: Clock = clock) -> Store:
            store = self.make_store(tmp_path, by)
            store.migrate()
            opened.append(store)
            return store

        yield open_it
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, open_store: Open) -> Store:
        """An empty store that knows the workers ALICE and BOB."""
        store = open_store()
        for worker, name in ((ALICE, "alice"), (BOB, "bob")):
            store.enlist(worker, name, FOREVER)
        return store


def needs(store: Store, capability: str) -> None:
    """Leave out a test whose promise the store does not give, and say so."""
    if not getattr(store.can, capability):
        pytest.skip(f"the store declares can.{capability} = False")


def together(*works: Callable[[], object], seconds: float = 300.0) -> None:
    """Run all of it at the same time in threads of their own; the first error is raised here.

    Fails when one of them still runs after *seconds*: it waits for something that does not come.
    """
    start = threading.Barrier(len(works))
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    end = time.monotonic() + seconds
    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), f"a thread still ran after {seconds} seconds"


def as_long_as(condition: Callable[[], object], seconds: float = 60.0) -> Iterator[None]:
    """Go round while the condition holds; fails after *seconds*, for a broken store may hold it for ever."""
    end = time.monotonic() + seconds
    while condition():
        assert time.monotonic() < end, f"it still goes round after {seconds} seconds"
        yield


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something another thread or process does; fails after *seconds*."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not happen within {seconds} seconds"
        time.sleep(0.005)
