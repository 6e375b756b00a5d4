"""For the tests of your own application: a store of their own, a clock, ``drain`` and ``assert_enqueued``.

>>> from treppe import Treppe
>>> app = Treppe("sqlite:///shop.db")
>>> @app.task(name="shop.send_mail", queue="mail")
... def send_mail(to: str, order: int = 0) -> str:
...     return f"sent to {to}"
>>> with isolated(app) as clock:
...     placed = send_mail.using(delay="15m").enqueue("ada@example.org", order=42)
...     job = assert_enqueued(send_mail, order=42)
...     too_early = drain(app).done
...     clock.advance(15 * 60)
...     drain(app).done, app.result(placed.id)
1700000900.0
(1, 'sent to ada@example.org')
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, Final

from treppe.app import Treppe, open_store, pacer_for
from treppe.app.task import Task
from treppe.job import Job
from treppe.store.protocol import Filter, Store
from treppe.testing.clock import ManualClock
from treppe.worker import Tally, Worker

LOOK_EVERY: Final = 0.005
HELD_AFTER: Final = 1.0


@contextmanager
def isolated(app: Treppe, clock: ManualClock | None = None) -> Iterator[ManualClock]:
    """As long as the block, the app's jobs live in a new store in a temporary folder, by a clock of your own.

    The store is a real one, only without waiting for the disk.
    """
    clock = clock or ManualClock()
    with tempfile.TemporaryDirectory(prefix="treppe-") as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'jobs.db'}", durable=False, clock=clock)
        try:
            with app.instead(store):
                yield clock
        finally:
            store.close()


def drain(app: Treppe, seconds: float = 10.0) -> Tally:
    """Run what is due now with a real worker, and whatever becomes due by it; says what was done.

    It ends when a look brings nothing more, at the latest after so many *seconds* of real time.
    """
    worker = Worker(app.store, app.handlers(), pacer_for(app.queues))
    ended = threading.Event()
    watcher = threading.Thread(target=_stop_when_idle, args=(worker, app.store, ended))
    watcher.start()
    try:
        return worker.drain(seconds)
    finally:
        ended.set()
        watcher.join()


def assert_enqueued(task: Task[..., Any], **arguments: Any) -> Job:
    """The newest job of *task* whose arguments are these, in any state; AssertionError when there is none.

    Arguments that are not named may be anything.
    """
    found = list(_enqueued(task))
    for job, given in found:
        if given.items() >= arguments.items():
            return job
    there = "\n".join(f"  {job.id}: {given}" for job, given in found) or "  none at all"
    raise AssertionError(f"no job of {task.name} with {arguments}. There are:\n{there}")


def assert_not_enqueued(task: Task[..., Any], **arguments: Any) -> None:
    """AssertionError when there is a job of *task* with these arguments."""
    for job, given in _enqueued(task):
        if given.items() >= arguments.items():
            raise AssertionError(f"there is a job of {task.name} with {arguments}: {job.id}")


def _stop_when_idle(worker: Worker, store: Store, ended: threading.Event) -> None:
    """What is due and not taken for a while is held, or nobody's."""
    seen, since = None, time.monotonic()
    while not ended.wait(LOOK_EVERY):
        backlog = store.backlog()
        due = backlog.total("waiting") + backlog.total("behind")
        if (now := (copy(worker.tally), due)) != seen:
            seen, since = now, time.monotonic()
        if not backlog.total("running") and (not due or time.monotonic() - since > HELD_AFTER):
            worker.stop()


def _enqueued(task: Task[..., Any]) -> Iterator[tuple[Job, dict[str, Any]]]:
    store, after = task.app.store, None
    while True:
        page = store.find(Filter(task=task.name), after)
        for found in page.jobs:
            if job := store.get(found.id):
                yield job, task.arguments.decode(job.payload or b"{}")
        if (after := page.after) is None:
            return
