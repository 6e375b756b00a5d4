"""Python functions as tasks: what ``@app.task`` makes of them, and how they are enqueued."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from datetime import datetime
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import msgspec

from treppe.app.arguments import Arguments
from treppe.app.context import Context
from treppe.app.durations import Duration, moment, seconds
from treppe.app.endings import Ending
from treppe.app.options import Options
from treppe.app.outcomes import raised, returned, unfit
from treppe.errors import ConfigError, InvalidJob, TreppeError
from treppe.intake import new_id
from treppe.job import Kind, NewJob, Outcome, Placed, Repeat
from treppe.settle import Rules
from treppe.worker import Handler, Run

if TYPE_CHECKING:
    from treppe.app import Treppe

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("treppe.task")


class Call(msgspec.Struct, frozen=True):
    """What one call says differently; see :meth:`Task.using`."""

    id: str | None = None
    delay: float = 0.0
    at: float | None = None
    key: str | None = None
    priority: int | None = None
    queue: str | None = None
    within: Any = None


class Task(Generic[P, R]):
    """A function that handles jobs. Calling it runs it here and now; :meth:`enqueue` runs it later.

    ::

        @app.task(queue="mail", attempts=5)
        def send_mail(to: str, order: int) -> None: ...

        send_mail.enqueue("ada@example.org", order=42)
    """

    def __init__(self, app: Treppe, function: Callable[..., Any], name: str, options: Options) -> None:
        update_wrapper(self, function, updated=())
        self.app, self.function, self.name, self.options = app, function, name, options
        self.is_async = inspect.iscoroutinefunction(function)
        self.arguments = Arguments(function, name)
        if options.key is not None and options.key not in self.arguments.names:
            cure = f"Name one of: {', '.join(sorted(self.arguments.names))}" if self.arguments.names else ""
            raise ConfigError(f'task "{name}": key', f'"{options.key}" is not one of its arguments', cure)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function here and now, without a job."""
        if self.arguments.takes_context:
            raise TreppeError(f'task "{self.name}" needs the context of a job: enqueue it, or call its .function')
        result: R = self.function(*args, **kwargs)
        return result

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Placed:
        """Store one job; returns when it is on disk. ``Placed.duplicate`` tells of a taken id.

        Raises InvalidJob (arguments), Conflict (the id belongs to other work), StoreUnavailable.
        """
        return Bound(self, Call()).enqueue(*args, **kwargs)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Placed:
        """The same for async code: waits without blocking the event loop."""
        return await Bound(self, Call()).aenqueue(*args, **kwargs)

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """The job of one call, not stored yet: for :meth:`treppe.Treppe.enqueue_many`."""
        return self.job(Call(), args, kwargs)

    def using(
        self,
        *,
        id: str | None = None,
        delay: Duration = 0.0,
        at: float | datetime | None = None,
        key: str | None = None,
        priority: int | None = None,
        queue: str | None = None,
        within: Any = None,
    ) -> Bound[P, R]:
        """The task with settings for one call.

        ``delay`` (seconds, ``"15m"`` or a timedelta) or ``at`` (Unix seconds, or a datetime with a time zone) sets
        when it becomes due; ``within`` is your own database connection: the job exists exactly if your transaction
        commits. InvalidJob for what cannot be.

        ::

            send_mail.using(id=f"mail:{order}", delay="10m", within=connection).enqueue(to, order)
        """
        try:
            if at is not None and delay:
                raise ConfigError("at", "delay is given as well", "Give one of them")
            due = None if at is None else moment(at, "at")
            call = Call(id, seconds(delay, "delay"), due, key, priority, queue, within)
        except ConfigError as error:
            raise InvalidJob(f'task "{self.name}": {error}') from None
        return Bound(self, call)

    def job(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        """The job that one call would store."""
        o = self.options
        payload = self.arguments.encode(args, kwargs)
        return NewJob(
            new_id() if call.id is None else call.id, self.name, o.queue if call.queue is None else call.queue, payload,
            key=self._key_in(payload) if call.key is None else call.key,
            priority=o.priority if call.priority is None else call.priority, repeat=o.repeat,
            attempts=o.attempts, crashes=o.crashes, delay=call.delay, at=call.at, expires=o.expires,
            deadline=o.deadline, keep=o.keep, skip_dead=o.skip_dead,
        )  # fmt: skip

    def handler(self) -> Handler:
        """The handler a worker runs."""
        run = self._run_in_loop if self.is_async else self._run_plainly
        return Handler(run, Rules(backoff=self.options.backoff), self.options.timeout, in_loop=self.is_async)

    def _key_in(self, payload: bytes) -> str | None:
        if self.options.key is None:
            return None
        value = msgspec.to_builtins(self.arguments.decode(payload)[self.options.key])
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        where = f'task "{self.name}": the order key "{self.options.key}"'
        raise InvalidJob(f"{where} is a {type(value).__name__}. Use a text, a whole number, or None")

    def _run_plainly(self, run: Run) -> Outcome:
        arguments = self._arguments_of(run)
        if isinstance(arguments, Outcome):
            return arguments
        try:
            return returned(self.function(*self._context_of(run), **arguments))
        except BaseException as error:
            return self._ended(run, error)

    async def _run_in_loop(self, run: Run) -> Outcome:
        arguments = self._arguments_of(run)
        if isinstance(arguments, Outcome):
            return arguments
        try:
            return returned(await self.function(*self._context_of(run), **arguments))
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) and task.cancelling():
                raise  # somebody cancels this run; else the function made up the error itself
            return self._ended(run, error)
        except BaseException as error:
            return self._ended(run, error)

    def _arguments_of(self, run: Run) -> dict[str, Any] | Outcome:
        try:
            return self.arguments.decode(run.claim.payload)
        except (ValueError, TypeError, RecursionError) as error:
            log.warning('job "%s" does not fit its task %s: %s', run.claim.id, self.name, error)
            return unfit(error)

    def _context_of(self, run: Run) -> tuple[Context, ...]:
        return (Context(run),) if self.arguments.takes_context else ()

    def _ended(self, run: Run, error: BaseException) -> Outcome:
        outcome = raised(error, run.claim.repeat is Repeat.SAFE, self.options.down)
        # The other side's trouble fills no log with tracebacks, and what a task says itself is no accident.
        trace = None if isinstance(error, Ending) or outcome.kind is Kind.DOWN else error
        level = logging.INFO if outcome.kind is Kind.SNOOZED else logging.WARNING
        text = 'job "%s" of %s ended as %s: %s'
        log.log(level, text, run.claim.id, self.name, outcome.kind, outcome.error, exc_info=trace)
        return outcome


class Bound(Generic[P, R]):
    """A task together with the settings of one call; made by :meth:`Task.using`."""

    def __init__(self, task: Task[P, R], call: Call) -> None:
        self._task, self._call = task, call

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Placed:
        """Store the job; see :meth:`Task.enqueue`."""
        job = self._task.job(self._call, args, kwargs)
        return self._task.app.enqueue_many([job], self._call.within)[0]

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Placed:
        """Store the job without blocking the event loop."""
        job = self._task.job(self._call, args, kwargs)
        return (await self._task.app.aenqueue_many([job], self._call.within))[0]

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """The job, not stored yet: for :meth:`treppe.Treppe.enqueue_many`."""
        if self._call.within is not None:
            raise InvalidJob(f'task "{self._task.name}": give within= to enqueue_many, where the jobs are stored')
        return self._task.job(self._call, args, kwargs)
