"""The composition root: a store from a URL, tasks, the pace of queues. The only place that names a concrete store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

import msgspec

from treppe.app.context import Context
from treppe.app.endings import Bury, Down, Ending, Retry, Unclear, Wait
from treppe.app.task import Bound, Duration, Task, options
from treppe.config import Backoff, Queue
from treppe.config.parse import rate as parse_rate
from treppe.config.parse import sqlite_path
from treppe.door import within as guest
from treppe.errors import ConfigError, NotFound, StoreError
from treppe.intake import Intake, raise_conflicts
from treppe.job import Job, NewJob, Placed
from treppe.policy.pace import Limits, Pacer
from treppe.store.protocol import Store
from treppe.store.sqlite import SQLiteStore
from treppe.worker import Handler

__all__ = [
    "Bound",
    "Bury",
    "Context",
    "Down",
    "Ending",
    "Retry",
    "Task",
    "Treppe",
    "Unclear",
    "Wait",
    "open_store",
    "pacer_for",
]

P = ParamSpec("P")
R = TypeVar("R")


def open_store(url: str, *, migrate: bool = True) -> SQLiteStore:
    """The store behind a URL such as ``sqlite:///treppe.db``; its tables are brought up to date.

    ConfigError for a URL that names none, StoreError when it cannot be opened.
    """
    path = sqlite_path(url)
    if not path.parent.is_dir():
        raise StoreError(
            f'{path}: the folder "{path.parent}" does not exist. Create it, or name another file in `store`'
        )
    store = SQLiteStore(path)
    if migrate:
        store.migrate()
    return store


def pacer_for(queues: Mapping[str, Queue]) -> Pacer:
    """The pace policy of the queues that have a rate or a concurrency."""
    return Pacer({queue.name: Limits(queue.rate, queue.burst, queue.concurrent) for queue in queues.values()})


class Treppe:
    """An application's tasks and its store.

    ::

        app = Treppe("sqlite:///shop.db")

        @app.task(queue="mail")
        def send_mail(to: str) -> None: ...

        send_mail.enqueue("ada@example.org")

    The store is opened at first use. Run the jobs with ``treppe work --app module:app``.
    """

    def __init__(self, store: str | Store = "sqlite:///treppe.db") -> None:
        self.tasks: dict[str, Task[Any, Any]] = {}
        self.queues: dict[str, Queue] = {}
        self._url = store if isinstance(store, str) else None
        self._store: Store | None = None if isinstance(store, str) else store

    @property
    def store(self) -> Store:
        """The store, opened now if it was not yet."""
        if self._store is None:
            self._store = open_store(self._url or "")
        return self._store

    def queue(self, name: str, *, rate: str | None = None, burst: int = 1, concurrent: int | None = None) -> None:
        """Give a queue its pace, for all workers together: ``rate="300/15s"``, ``concurrent=2``."""
        self.queues[name] = Queue(name, None if rate is None else parse_rate(rate), burst, concurrent)

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        crashes: int | None = None,
        deadline: Duration | None = None,
        expires: Duration | None = None,
        timeout: Duration | None = None,
        key: str | None = None,
        repeat: Literal["safe", "ask"] | None = None,
        priority: int | None = None,
        keep: Duration | None = None,
        backoff: Backoff | None = None,
        skip_dead: bool | None = None,
        down: type[BaseException] | tuple[type[BaseException], ...] = (),
    ) -> Decorator: ...

    def task(self, function: Callable[..., Any] | None = None, /, *, name: str | None = None, **given: Any) -> Any:
        """Make a function a task.

        ``queue`` (default: the task's own name) is the unit of pace. ``attempts`` are charged tries (5).
        ``deadline`` is a promise that is told when broken, ``expires`` ("14d") when to give up, ``timeout`` the
        time limit of one run. ``key`` names the argument that is the order key. ``repeat="ask"``: never run again
        by itself when nobody knows whether it happened. ``down`` are the exceptions that mean "the other side is
        down". Durations are seconds or texts such as ``"15m"``.
        """
        if function is not None:
            return self._register(function, name, given)
        return lambda function: self._register(function, name, given)

    def place(self, jobs: Sequence[NewJob], within: Any = None) -> list[Placed]:
        """Store jobs, within the caller's transaction if a connection is given. Conflict for a taken id."""
        intake = Intake(self.store)
        if within is None:
            put = intake.put(jobs)
        else:
            put = guest.run(intake.plan(jobs), within, getattr(self.store, "path", None))
        return list(raise_conflicts(put).jobs)

    async def aplace(self, jobs: Sequence[NewJob], within: Any = None) -> list[Placed]:
        """The same for async code."""
        if within is None:
            return await asyncio.to_thread(self.place, jobs)
        plan = Intake(self.store).plan(jobs)
        put = await guest.arun(plan, within, getattr(self.store, "path", None))
        return list(raise_conflicts(put).jobs)

    def job(self, id: str) -> Job:
        """One job with its state and history; NotFound."""
        job = self.store.get(id)
        if job is None:
            raise NotFound("job", id)
        return job

    def result(self, id: str) -> Any:
        """What the job's task returned, as plain data; None while it is not done. NotFound."""
        job = self.job(id)
        return None if job.result is None else msgspec.json.decode(job.result)

    def handlers(self) -> dict[str, Handler]:
        """The handlers of all tasks, for a worker."""
        return {name: task.handler() for name, task in self.tasks.items()}

    def _register(self, function: Callable[..., Any], name: str | None, given: dict[str, Any]) -> Task[Any, Any]:
        name = name or f"{function.__module__}.{function.__qualname__}".replace(".<locals>", "")
        if name in self.tasks:
            raise ConfigError(f'task "{name}"', "there are two of this name", "Give one of them another: name=")
        task: Task[Any, Any] = Task(self, function, name, options(name, given))
        self.tasks[name] = task
        return task


class Decorator(Protocol):
    """What ``@app.task(...)`` with settings returns, for type checkers."""

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    def __call__(self, function: Any, /) -> Any: ...
