"""The n-th call to the store fails, for n = 1, 2, 3 … until a fixed scenario runs through untouched (SQLite's way).

Each fault comes in two ends: the call failed before it did anything, and it was done but nobody was told.
"""

import itertools
import threading
from collections import Counter
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
JOBS = ("one", "two", "stepped", "wants-again")


class Faulty:
    """A store whose n-th call raises, and as many after it; before they do anything or after they have done it."""

    def __init__(self, store: SQLiteStore, n: int, error: Exception, after: bool, width: int = 1) -> None:
        self._store, self._faults, self._error, self._after = store, range(n, n + width), error, after
        self._count = itertools.count(1)
        self.failed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        return self._counted(name, real) if name in CALLS else real

    def _counted(self, name: str, real: Any) -> Any:
        def call(*args: Any) -> Any:
            if next(self._count) not in self._faults:
                return real(*args)
            self.failed.append(name)
            if self._after:
                real(*args)
            raise type(self._error)(*self._error.args)

        return call


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
def test_whatever_call_fails_nothing_is_lost_and_nothing_is_settled_twice(tmp_path, after, width):
    met: set[str] = set()
    for n in itertools.count(1):
        store = SQLiteStore(tmp_path / f"{n}.db", durable=False)
        store.lease = LEASE
        store.migrate()
        faulty = Faulty(store, n, ERRORS[n % 3], after, width)
        try:
            look_at(faulty, store, n)
        finally:
            store.close()
        if not faulty.failed:
            break
        met.update(faulty.failed)
    assert met >= {"put", "claim", "note", "upkeep", "wait"}  # settles ride with claims here; their own are below


def look_at(faulty: Faulty, store: SQLiteStore, n: int) -> None:
    scenario = Scenario(faulty)
    upkeep = Upkeep(store)
    fault = lambda: f"call {n}, {faulty.failed}"  # noqa: E731
    with working(
        faulty, scenario.app.handlers(), chores=lambda: faulty.upkeep(None).more, on_trouble=upkeep.trouble
    ) as worker:
        until(lambda: store.backlog().done == len(JOBS))
    for id in JOBS:
        job = store.get(id)
        assert [line.event for line in job.history].count(Event.FINISH) == 1, fault()
        assert job.result == f'"{id}"'.encode(), fault()
        assert (job.charged, job.crashes) == (0, 0), fault()
    assert store.backlog().accepted == len(JOBS), fault()
    assert scenario.ran["one"] == scenario.ran["two"] == 1, fault()
    assert scenario.ran["wants-again"] == 2, fault()
    assert len(scenario.stepped) == 1 or "note" in faulty.failed, fault()
    assert worker.tally.done + worker.tally.refused >= len(JOBS), fault()


@pytest.mark.parametrize("after", [False, True], ids=["failed before", "done but unknown"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_settle_that_fails_while_winding_down_is_made_once_more(store, error, after):
    running, go_on = threading.Event(), threading.Event()

    class FailsToSettle(Faulty):
        def _counted(self, name, real):
            return super()._counted(name, real) if name == "settle" else real

    faulty = FailsToSettle(store, 1, error, after)
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
    assert faulty.failed == ["settle"]
    assert told == ["trouble"]  # upkeep must be patient after it, also in a drain that goes on
    assert [line.event for line in store.get("job").history] == [Event.FINISH]
    assert worker.tally.done + worker.tally.refused == 1


def test_trouble_while_waiting_for_work_is_told(store):
    class FailsToWait(Faulty):
        def _counted(self, name, real):
            return super()._counted(name, real) if name == "wait" else real

    told: list[str] = []
    with working(FailsToWait(store, 1, ERRORS[0], False), {}, on_trouble=lambda: told.append("trouble")):
        until(lambda: told)
    assert told == ["trouble"]


def test_a_store_that_is_away_for_longer_than_a_lease_is_waited_for(store):
    away: list[bool] = []

    class Away(Faulty):
        def _counted(self, name, real):
            def call(*args):
                if away:
                    raise StoreUnavailable("away")
                return real(*args)

            return call

    app = Treppe(store)
    task = app.task(name="task", queue="q")(lambda: None)
    with working(Away(store, 0, ERRORS[0], False), app.handlers()) as worker:
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

    class Flaky(Faulty):
        def _counted(self, name, real):
            def call(*args):
                n = next(calls)
                if n % 3 == 0:
                    raise type(ERRORS[n // 3 % 3])("one of three")
                return real(*args)

            return call

    app = Treppe(store)
    ran: Counter[int] = Counter()
    task = app.task(name="task", queue="q")(lambda n: ran.update([n]))
    for n in range(30):
        task.enqueue(n)
    with working(Flaky(store, 0, ERRORS[0], False), app.handlers()):
        until(lambda: store.backlog().done == 30, 20)
    assert ran == Counter(range(30))


def test_a_worker_is_a_plain_object_until_it_runs(store):
    """One that is made and never run leaves nothing open."""
    assert isinstance(Worker(store, {}, None), Worker)  # type: ignore[arg-type]
