"""The composition root: a store from a URL, tasks, the pace of queues. The only place that names a concrete store."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, final, overload

import msgspec

from treppe.app import within as guest
from treppe.app.context import Context
from treppe.app.endings import Bury, Down, Ending, Retry, Unclear, Wait
from treppe.app.functions import name_given, name_of, refuse_no_task
from treppe.app.options import Given, options
from treppe.app.queues import paced
from treppe.app.task import Bound, Task
from treppe.config import Queue
from treppe.config.parse import store_file
from treppe.errors import ConfigError, NotFound, StoreError
from treppe.intake import Intake, raise_conflicts
from treppe.job import Job, NewJob, Placed
from treppe.policy.pace import Limits, Pacer
from treppe.store.protocol import Store
from treppe.store.sqlite import SQLiteStore
from treppe.worker import Handler

if TYPE_CHECKING:
    from treppe.store.postgres import PostgresStore

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
    "place_of",
    "tables",
]

P = ParamSpec("P")
R = TypeVar("R")


def open_store(
    url: str, *, migrate: bool = True, durable: bool = True, clock: Callable[[], float] = time.time
) -> SQLiteStore | PostgresStore:
    """The store behind a URL such as ``sqlite:///treppe.db`` or ``postgresql://app@db.example/shop``.

    Its tables are brought up to date. ``durable=False`` and another ``clock`` (Unix seconds) are for tests.
    ConfigError for a URL that names no store, StoreError when it cannot be opened.
    """
    path = store_file(url)
    store = _on_server(url, clock) if path is None else _in_file(path, clock, durable)
    if migrate:
        store.migrate()
    return store


def place_of(url: str) -> str:
    """The file behind a store's URL, from the root; or the URL, where it is a server's."""
    path = store_file(url)
    return url if path is None else str(path.resolve())


def tables() -> str:
    """The tables on PostgreSQL as one SQL script, for those whose migrations are made by something else."""
    from treppe.store.postgres import migrating

    return migrating.printed()


def _in_file(path: Path, clock: Callable[[], float], durable: bool) -> SQLiteStore:
    if not path.parent.is_dir():
        raise StoreError(
            f'{path}: the folder "{path.parent}" does not exist. Create it, or name another file in `store`'
        )
    return SQLiteStore(path, clock=clock, durable=durable)


def _on_server(url: str, clock: Callable[[], float]) -> PostgresStore:
    try:
        from treppe.store.postgres import PostgresStore
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise ConfigError("store", "PostgreSQL needs its driver", 'Run: pip install "treppe[postgres]"') from error
    return PostgresStore(url, clock=None if clock is time.time else clock)


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
        self._url = store if isinstance(store, str) else ""
        self._store: Store | None = None if isinstance(store, str) else store
        self._opening = threading.Lock()
        if isinstance(store, str):
            store_file(store)  # a mistake is told here, not at the first job

    @property
    def store(self) -> Store:
        """The store, opened now if it was not yet."""
        with self._opening:
            if self._store is None:
                self._store = open_store(self._url)
            return self._store

    @property
    def place(self) -> str:
        """The file that the jobs are in, or the URL of their database; "" where nobody knows. Nothing is opened."""
        url = self._url or getattr(self._store, "url", "")
        if url:
            return place_of(url)
        path = getattr(self._store, "path", "")
        return str(Path(path).resolve()) if path else ""

    def close(self) -> None:
        """Let go of the store's connections; the next use opens them again."""
        if self._store is not None:
            self._store.close()

    @contextmanager
    def instead(self, store: Store) -> Iterator[None]:
        """Keep jobs in another store as long as the block: for tests."""
        before, self._store = self._store, store
        try:
            yield
        finally:
            self._store = before

    def queue(self, name: str, *, rate: str | None = None, burst: int = 1, concurrent: int | None = None) -> None:
        """Give a queue its pace, for all workers together: ``rate="300/15s"``, ``concurrent=2``.

        A name may end in ``*``: each queue that begins so gets a pace of its own. ConfigError for what cannot be.
        """
        if name in self.queues:
            raise ConfigError(f'queue "{name}"', "its pace is set already", "Say all of it in one place")
        self.queues[name] = paced(name, rate, burst, concurrent)

    @overload
    def task(self, function: Callable[Concatenate[_Anything, P], R], /) -> Task[..., R]: ...
    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, function: None = None, /, *, name: str | None = None, **given: Unpack[Given]) -> Decorator: ...

    def task(self, function: Any = None, /, *, name: str | None = None, **given: Unpack[Given]) -> Any:
        """Make a function a task.

        ``queue`` (default: the task's own name) is the unit of pace. ``attempts`` are charged tries (5), ``crashes``
        how often it may take its worker down (3). ``deadline`` is a promise that is told when broken, ``expires``
        ("14d") when to give up, ``timeout`` the time limit of one run, ``backoff`` the waits between tries. ``key``
        names the argument that is the order key. ``repeat="ask"``: never run again by itself when nobody knows
        whether it happened. ``down`` are the exceptions that mean "the other side is down" (default: connection and
        time-out errors). ``keep`` is how long the id stays taken after the end. Durations are seconds, texts such as
        ``"15m"`` or timedeltas. ConfigError names the setting that is wrong.
        """
        if function is not None:
            return self._register(function, name, given)
        return lambda function: self._register(function, name, given)

    def enqueue_many(self, jobs: Iterable[NewJob], within: Any = None) -> list[Placed]:
        """Store jobs that ``task.prepare(…)`` made, of any tasks, in one transaction: all of them or none.

        With ``within``, your own database connection, they exist exactly if your transaction commits. Conflict when
        an id is taken by other work; what else was given is stored then all the same. InvalidJob, StoreUnavailable.

        ::

            app.enqueue_many(send_mail.using(id=f"mail:{n}").prepare(to, n) for n, to in orders)
        """
        jobs = list(jobs)
        put = Intake(self.store).put(jobs) if within is None else guest.run(self._host(), jobs, within)
        return list(raise_conflicts(put).jobs)

    async def aenqueue_many(self, jobs: Iterable[NewJob], within: Any = None) -> list[Placed]:
        """The same for async code. Cancelled, it may have stored them; with the same ids it may be said again."""
        if within is None:
            return await asyncio.to_thread(self.enqueue_many, list(jobs))
        store = await asyncio.to_thread(self._host) if self._store is None else self._store
        put = await guest.arun(store, list(jobs), within)
        return list(raise_conflicts(put).jobs)

    def _host(self) -> Store:
        """The store that gives statements for the caller's connection.

        A file is not opened for it, not even to make its tables: that would wait for the lock the caller may hold.
        """
        in_a_file = bool(self._url) and store_file(self._url) is not None
        return self._store or (open_store(self._url, migrate=False) if in_a_file else self.store)

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

    def _register(self, function: Any, name: str | None, given: Mapping[str, object]) -> Task[Any, Any]:
        refuse_no_task(function)
        name = name_of(function) if name is None else name_given(name)
        if name in self.tasks:
            raise ConfigError(f'task "{name}"', "there are two of this name", "Give one of them another: name=")
        task: Task[Any, Any] = Task(self, function, name, options(name, given))
        self.tasks[name] = task
        return task


@final
class _Anything:
    """A function that takes this as its first argument takes anything there: no context, and nothing to check."""


class Decorator(Protocol):
    """What ``@app.task(...)`` with settings returns, for type checkers."""

    @overload
    def __call__(self, function: Callable[Concatenate[_Anything, P], R], /) -> Task[..., R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    def __call__(self, function: Any, /) -> Any: ...
