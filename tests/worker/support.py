"""A store of its own, workers in threads and processes, and waiting without sleeping."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from treppe.job import Claim, Kind, NewJob, Outcome, Repeat
from treppe.policy.pace import Pacer
from treppe.settle import AFTER_LAPSE
from treppe.store.protocol import Store, Wanted
from treppe.worker import Handler, Run, Worker

OK = Outcome(Kind.OK, acted=True)
PATIENCE = 10.0
LEASE = 0.5
FREE = Pacer({})


def until(holds: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait for something a thread or process does, and return it; fails when it does not happen in time."""
    give_up = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.003)
    return found


def put(store: Store, *ids: str, task: str = "task", queue: str = "q", **fields: Any) -> None:
    store.put([NewJob(id, task, queue, **fields) for id in ids])


def numbered(n: int, name: str = "job") -> list[str]:
    return [f"{name}-{i}" for i in range(n)]


def states(store: Store, *ids: str) -> set[str]:
    return {store.get(id).state.value for id in ids}


def sync(run: Callable[[Run], Any], timeout: float | None = None) -> Handler:
    """A handler for threads; what returns nothing has gone well."""
    return Handler(lambda job: run(job) or OK, timeout=timeout)


def in_loop(run: Callable[[Run], Any], timeout: float | None = None) -> Handler:
    async def handle(job: Run) -> Outcome:
        return await run(job) or OK

    return Handler(handle, timeout=timeout, in_loop=True)


def a_worker(store: Store, handlers: Mapping[str, Handler], pace: Any = FREE, **settings: Any) -> Worker:
    return Worker(store, handlers, pace, **{"lease": LEASE, "grace": 5.0} | settings)


@contextmanager
def working(store: Store, handlers: Mapping[str, Handler], pace: Any = FREE, **settings: Any) -> Iterator[Worker]:
    """A worker that runs in a thread as long as the block; what it died of is raised here."""
    worker = a_worker(store, handlers, pace, **settings)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="engine")
    thread.start()
    try:
        yield worker
    except AssertionError as failed:
        raise errors[0] if errors else failed from failed
    finally:
        worker.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the worker does not end"
    if errors:
        raise errors[0]


def lapse(store: Store, *ids: str) -> None:
    """Do upkeep until these jobs are nobody's any more."""
    until(lambda: store.upkeep(AFTER_LAPSE) and "running" not in states(store, *ids))


def claimed(store: Store, n: int = 1, *tasks: str, worker: int = 4711, lease: float = 3600.0) -> tuple[Claim, ...]:
    """Claims of a worker that is nothing but a number."""
    store.enlist(worker, "by hand", lease)
    return store.claim(Wanted(worker, n, n, frozenset(tasks or ("task",))), FREE).claims


class Order(msgspec.Struct, frozen=True):
    """What a worker process shall do."""

    file: str
    act: str = "run"  # or drain
    lease: float = LEASE
    threads: int = 10
    budget: float = 10.0


@contextmanager
def child(file: Path, **order: Any) -> Iterator[subprocess.Popen[str]]:
    """A worker process of its own, killed at the end; see ``tests.worker.child``."""
    command = [sys.executable, "-m", "tests.worker.child", msgspec.json.encode(Order(str(file), **order)).decode()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def ask(store: Store, *ids: str, **fields: Any) -> None:
    put(store, *ids, repeat=Repeat.ASK, **fields)
