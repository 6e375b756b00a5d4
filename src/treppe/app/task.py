"""Python functions as tasks: what ``@app.task`` makes of them, and how they are enqueued."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, get_type_hints

import msgspec

from treppe.app.arguments import Arguments
from treppe.app.context import Context
from treppe.app.endings import Ending
from treppe.config import DAY, Backoff
from treppe.config.parse import duration
from treppe.errors import ConfigError, InvalidJob
from treppe.intake import new_id
from treppe.job import Kind, NewJob, Outcome, Placed, Repeat
from treppe.settle import DONE, Rules
from treppe.worker import Handler, Run

if TYPE_CHECKING:
    from treppe.app import Treppe

P = ParamSpec("P")
R = TypeVar("R")
Duration = float | str

DOWN_BY_DEFAULT = (ConnectionError, TimeoutError)
"""The standard library's; those of aiohttp, httpx, requests and urllib3 are known by name."""

_DOWN_BY_NAME = {
    "aiohttp": {"ClientConnectionError", "ServerTimeoutError"},
    "httpx": {"TransportError"},
    "requests": {"ConnectionError", "Timeout"},
    "urllib3": {"HTTPError"},
    "socket": {"gaierror"},
}


class Options(msgspec.Struct, frozen=True):
    """The settings of a task; durations in seconds."""

    queue: str
    attempts: int = 5
    crashes: int = 3
    deadline: float | None = None
    expires: float = 14 * DAY
    timeout: float | None = None
    key: str | None = None  # the name of the argument that is the order key
    repeat: Repeat = Repeat.SAFE
    priority: int = 0
    keep: float = 30 * DAY
    backoff: Backoff = Backoff()
    skip_dead: bool = False
    down: tuple[type[BaseException], ...] = ()


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
        self.app, self.function, self.name, self.options = app, function, name, options
        self.is_async = inspect.iscoroutinefunction(function)
        self.takes_context = _takes_context(function)
        self.arguments = Arguments(function, self.takes_context, name)
        self.__doc__, self.__name__ = function.__doc__, getattr(function, "__name__", name)
        if options.key is not None and options.key not in inspect.signature(function).parameters:
            raise ConfigError(f'task "{name}"', f'key="{options.key}" is not one of its parameters')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function directly, without a job."""
        return self.function(*args, **kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Placed:
        """Store one job; returns when it is on disk. ``Placed.duplicate`` tells of a taken id.

        Raises InvalidJob (arguments), Conflict (the id belongs to other work), StoreUnavailable.
        """
        return Bound(self, Call()).enqueue(*args, **kwargs)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Placed:
        """The same for async code: waits without blocking the event loop."""
        return await Bound(self, Call()).aenqueue(*args, **kwargs)

    def enqueue_many(self, calls: Iterable[dict[str, Any]]) -> list[Placed]:
        """Store many jobs in one transaction, given as keyword arguments; ids are new ones.

        ::

            send_mail.enqueue_many({"to": to, "order": 42} for to in addresses)
        """
        jobs = [self.job(Call(), (), kwargs) for kwargs in calls]
        return self.app.place(jobs)

    def using(
        self,
        *,
        id: str | None = None,
        delay: Duration = 0.0,
        at: float | None = None,
        key: str | None = None,
        priority: int | None = None,
        queue: str | None = None,
        within: Any = None,
    ) -> Bound[P, R]:
        """The task with settings for one call.

        ``delay`` (seconds or ``"15m"``) or ``at`` (Unix seconds) sets when it becomes due; ``within`` is your own
        database connection: the job exists exactly if your transaction commits.

        ::

            send_mail.using(id=f"mail:{order}", delay="10m", within=connection).enqueue(to, order)
        """
        if at is not None and delay:
            raise InvalidJob(f'task "{self.name}": give delay= or at=, not both')
        return Bound(self, Call(id, _seconds(delay, "delay"), at, key, priority, queue, within))

    def job(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        """The job that one call would store."""
        o = self.options
        payload = self.arguments.encode(args, kwargs)
        return NewJob(
            call.id or new_id(), self.name, call.queue or o.queue, payload,
            key=call.key if call.key is not None else self._key_in(payload),
            priority=o.priority if call.priority is None else call.priority, repeat=o.repeat,
            attempts=o.attempts, crashes=o.crashes, delay=call.delay, at=call.at, expires=o.expires,
            deadline=o.deadline, keep=o.keep, skip_dead=o.skip_dead,
        )  # fmt: skip

    def handler(self) -> Handler:
        """The handler a worker runs."""
        o = self.options
        run = self._run_in_loop if self.is_async else self._run_plainly
        return Handler(run, Rules(backoff=o.backoff), o.timeout, in_loop=self.is_async)

    def _key_in(self, payload: bytes) -> str | None:
        if self.options.key is None:
            return None
        value = self.arguments.decode(payload)[self.options.key]
        return None if value is None else str(value)

    def _run_plainly(self, run: Run) -> Outcome:
        try:
            return _done(self.function(*self._positional(run), **self.arguments.decode(run.claim.payload)))
        except BaseException as error:
            return self._outcome_of(error)

    async def _run_in_loop(self, run: Run) -> Outcome:
        try:
            return _done(await self.function(*self._positional(run), **self.arguments.decode(run.claim.payload)))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return self._outcome_of(error)

    def _positional(self, run: Run) -> tuple[Context, ...]:
        return (Context(run),) if self.takes_context else ()

    def _outcome_of(self, error: BaseException) -> Outcome:
        if isinstance(error, Ending):
            return error.outcome()
        text = f"{type(error).__name__}: {_text_of(error)}"
        if isinstance(error, msgspec.ValidationError | msgspec.DecodeError):
            return Outcome(Kind.REFUSED, f"the arguments do not fit the task any more: {_text_of(error)}", acted=False)
        if self._says_down(error):
            acted = False if self.options.repeat is Repeat.SAFE or isinstance(error, ConnectionRefusedError) else None
            return Outcome(Kind.DOWN if acted is False else Kind.FAILED, text, acted=acted)
        return Outcome(Kind.FAILED, text, acted=None)

    def _says_down(self, error: BaseException) -> bool:
        if isinstance(error, self.options.down or DOWN_BY_DEFAULT):
            return True
        return not self.options.down and any(
            kind.__name__ in _DOWN_BY_NAME.get(kind.__module__.split(".")[0], ()) for kind in type(error).__mro__
        )


class Bound(Generic[P, R]):
    """A task together with the settings of one call; made by :meth:`Task.using`."""

    def __init__(self, task: Task[P, R], call: Call) -> None:
        self._task, self._call = task, call

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Placed:
        """Store the job; see :meth:`Task.enqueue`."""
        job = self._task.job(self._call, args, kwargs)
        return self._task.app.place([job], self._call.within)[0]

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Placed:
        """Store the job without blocking the event loop."""
        job = self._task.job(self._call, args, kwargs)
        return (await self._task.app.aplace([job], self._call.within))[0]

    def enqueue_many(self, calls: Iterable[dict[str, Any]]) -> list[Placed]:
        """Store many jobs in one transaction, within yours if ``within`` was given; ids are new ones."""
        if self._call.id is not None:
            raise InvalidJob(f'task "{self._task.name}": one id cannot serve many jobs. Leave out id=')
        jobs = [self._task.job(self._call, (), kwargs) for kwargs in calls]
        return self._task.app.place(jobs, self._call.within)


def options(name: str, given: dict[str, Any]) -> Options:
    """The settings of ``@app.task(...)``, checked; ConfigError names the one that is wrong."""
    values = {key: value for key, value in given.items() if value is not None}
    for key in ("deadline", "expires", "timeout", "keep"):
        if key in values:
            values[key] = _seconds(values[key], f'task "{name}": {key}')
    repeat = values.get("repeat", "safe")
    if repeat not in ("safe", "ask"):
        raise ConfigError(f'task "{name}"', f'repeat="{repeat}" is not known here', 'Use "safe" or "ask"')
    values["repeat"] = Repeat(repeat)
    down = values.get("down", ())
    values["down"] = down if isinstance(down, tuple) else (down,)
    return Options(**{"queue": queue_named_after(name), **values})


def queue_named_after(task: str) -> str:
    """The queue of a task that names none: its own name, as queues are spelled.

    >>> queue_named_after("__main__.sendMail")
    'main__.sendmail'
    """
    return re.sub(r"[^a-z0-9_.:/-]", "-", task.lower()).lstrip("_.:/-")[:128] or "default"


def _seconds(value: Duration, what: str) -> float:
    if not isinstance(value, str):
        return float(value)
    try:
        return duration(value)
    except ConfigError as error:
        raise ConfigError(what, error.problem, error.cure) from None


def _takes_context(function: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(function).parameters)
    try:
        return bool(parameters) and get_type_hints(function).get(parameters[0]) is Context
    except NameError:
        return False


def _done(result: Any) -> Outcome:
    if result is None:
        return DONE
    try:
        return Outcome(Kind.OK, result=msgspec.json.encode(result), acted=True)
    except TypeError as error:
        note = msgspec.json.encode({"note": f"the result was not kept, it is not JSON-like: {error}"})
        return Outcome(Kind.OK, detail=note, acted=True)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its text could not be read)"
