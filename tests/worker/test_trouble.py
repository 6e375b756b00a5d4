"""The n-th call of each kind fails, for n = 1, 2, 3 … until a fixed scenario runs through untouched (SQLite's way).

Each fault comes in two ends: the call failed before it did anything, and it was done but nobody was told.
"""

import itertools
import threading
from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.worker.support import LEASE, until, working
from treppe import Backoff, Context, StoreError, StoreUnavailable, Treppe
from treppe.job import Event
from treppe.store.sqlite import SQLiteStore
from treppe.upkeep import Upkeep
from treppe.worker import Worker

ERRORS = (StoreUnavailable("the disk is full"), StoreError("broken"), RuntimeError("a fault of the adapter"))
CALLS = frozenset({"put", "claim", "settle", "note", "renew", "retire", "upkeep", "wait", "backlog"})
CERTAIN = ("put", "claim", "note", "upkeep", "wait", "retire")  # settles ride with claims; their own are below
MOST = 15
JOBS = ("one", "two", "stepped", "wants-again")


class Faulty:
    """A store whose n-th call of one kind raises, and as many after it; before it does anything or after it has."""

    def __init__(self, store: SQLiteStore, kind: str, n: int, error: Exception, after: bool, width: int = 1) -> None:
        self._store, self._kind, self._faults = store, kind, range(n, n + width)
        self._error, self._after = error, after
        self._count = itertools.count(1)
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        return self._faulty(real) if name == self._kind else real

    def _faulty(self, real: Any) -> Any:
        def call(*args: Any) -> Any:
            if next(self._count) not in self._faults:
                return real(*args)
            self.failed += 1
            if self._after:
                real(*args)
            raise type(self._error)(*self._error.args)

        return call


class EachCall:
    """A store of which every call meets something first."""

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        return partial(self._call, real) if name in CALLS else real

    def _call(self, real: Any, *args: Any) -> Any:
        self._meet()
        return real(*args)

    def _meet(self) -> None:
        raise NotImplementedError


class Scenario:
    """Four jobs, one with a step and one that wants to be called twice; enqueued by somebody who tries again."""

    def __init__(self, store: Any) -> None:
        self.app = Treppe(store)
        self.ran: Counter[str] = Counter()
        self.stepped: list[str] = []
        task = self.app.task(name="task", queue="q", backoff=Backoff(base=0.02, cap=0.05))(self._task)
        for id in JOBS:
            self._enqueue(task.using(id=id))

    def _task(self, ctx: Context) -> str:
        self.ran[ctx.id] += 1
        if ctx.id == "stepped":
            ctx.step("once", self.stepped.append, ctx.id)
        if ctx.id == "wants-again" and self.ran[ctx.id] == 1:
            raise ValueError("try again")
        return ctx.id

    @staticmethod
    def _enqueue(call: Any) -> None:
        for _ in range(3):
            try:
                call.enqueue()
            except (StoreError, RuntimeError):
                continue
            return


@pytest.mark.parametrize("width", [1, 2], ids=["once", "twice in a row"])
@pytest.mark.parametrize("after", [False, True], ids=["failed before", "done but unknown"])
@pytest.mark.parametrize("kind", CERTAIN)
def test_whatever_call_fails_nothing_is_lost_and_nothing_is_settled_twice(tmp_path, kind, after, width):
    for n in range(1, MOST + 1):
        store = SQLiteStore(tmp_path / f"{n}.db", durable=False)
        store.lease = LEASE
        store.migrate()
        faulty = Faulty(store, kind, n, ERRORS[n % 3], after, width)
        try:
            look_at(faulty, store, n)
        finally:
            store.close()
        if not faulty.failed:
            break
    assert n > 1, "there was no such call"


def look_at(faulty: Faulty, store: SQLiteStore, n: int) -> None:
    scenario = Scenario(faulty)
    upkeep = Upkeep(store)
    fault = f"call {n} of {faulty._kind}"
    with working(
        faulty,
        scenario.app.handlers(),
        chores=lambda: 0.0 if faulty.upkeep(None).more else 1.0,
        on_trouble=upkeep.trouble,
    ) as worker:
        until(lambda: store.backlog().done == len(JOBS))
    for id in JOBS:
        job = store.get(id)
        assert [line.event for line in job.history].count(Event.FINISH) == 1, fault
        assert job.result == f'"{id}"'.encode(), fault
        assert (job.charged, job.crashes) == (0, 0), fault
    assert store.backlog().accepted == len(JOBS), fault
    assert scenario.ran["one"] == scenario.ran["two"] == 1, fault
    assert scenario.ran["wants-again"] == 2, fault
    assert len(scenario.stepped) == 1 or faulty._kind == "note", fault
    assert worker.tally.done + worker.tally.refused >= len(JOBS), fault


@pytest.mark.parametrize("after", [False, True], ids=["failed before", "done but unknown"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_settle_that_fails_while_winding_down_is_made_once_more(store, error, after):
    running, go_on = threading.Event(), threading.Event()
    faulty = Faulty(store, "settle", 1, error, after)
    app = Treppe(store)

    @app.task(name="task", queue="q")
    def task() -> None:
        running.set()
        go_on.wait(10)

    task.using(id="job").enqueue()
    told: list[str] = []
    with working(faulty, app.handlers(), on_trouble=lambda: told.append("trouble")) as worker:
        until(running.is_set)
        worker.stop()
        go_on.set()
    assert faulty.failed == 1
    assert told == ["trouble"]  # upkeep must be patient after it, also in a drain that goes on
    assert [line.event for line in store.get("job").history] == [Event.FINISH]
    assert worker.tally.done + worker.tally.refused == 1


def test_trouble_while_waiting_for_work_is_told(store):
    told: list[str] = []
    with working(Faulty(store, "wait", 1, ERRORS[0], False), {}, on_trouble=lambda: told.append("trouble")):
        until(lambda: told)
    assert told == ["trouble"]


def test_a_store_that_is_away_for_longer_than_a_lease_is_waited_for(store):
    away: list[bool] = []

    class Away(EachCall):
        def _meet(self) -> None:
            if away:
                raise StoreUnavailable("away")

    app = Treppe(store)
    task = app.task(name="task", queue="q")(lambda: None)
    with working(Away(store), app.handlers()) as worker:
        until(lambda: worker._lease.fresh)
        away.append(True)
        for _ in range(20):
            task.enqueue()
        until(lambda: not worker._lease.fresh)
        assert store.backlog().done == 0
        away.clear()
        until(lambda: store.backlog().done == 20)


def test_a_store_that_fails_at_every_third_call_is_worked_through(store):
    calls = itertools.count(1)

    class Flaky(EachCall):
        def _meet(self) -> None:
            n = next(calls)
            if n % 3 == 0:
                raise type(ERRORS[n // 3 % 3])("one of three")

    app = Treppe(store)
    ran: Counter[int] = Counter()
    task = app.task(name="task", queue="q")(lambda n: ran.update([n]))
    for n in range(30):
        task.enqueue(n)
    with working(Flaky(store), app.handlers()):
        until(lambda: store.backlog().done == 30, 20)
    assert ran == Counter(range(30))


def test_a_worker_is_a_plain_object_until_it_runs(store):
    """One that is made and never run leaves nothing open."""
    assert isinstance(Worker(store, {}, None), Worker)  # type: ignore[arg-type]
