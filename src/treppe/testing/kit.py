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
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from treppe.app import Treppe, open_store, pacer_for
from treppe.app.task import Task
from treppe.job import Job
from treppe.store.protocol import Filter
from treppe.testing.clock import ManualClock
from treppe.worker import Tally, Worker


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
    seen: list[tuple[Tally, int]] = []

    def stop_when_idle() -> bool:
        """A chore that always wants to come again. What is due and not taken at a second look is held or unknown."""
        backlog = app.store.backlog()
        left = backlog.total("waiting") + backlog.total("behind")
        seen.append((copy(worker.tally), left))
        if not backlog.total("running") and (not left or seen[-2:-1] == seen[-1:]):
            worker.stop()
        return True

    worker = Worker(app.store, app.handlers(), pacer_for(app.queues), chores=stop_when_idle)
    return worker.drain(seconds)


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


def _enqueued(task: Task[..., Any]) -> Iterator[tuple[Job, dict[str, Any]]]:
    store, after = task.app.store, None
    while True:
        page = store.find(Filter(task=task.name), after)
        for found in page.jobs:
            if job := store.get(found.id):
                yield job, task.arguments.decode(job.payload or b"{}")
        if (after := page.after) is None:
            return
