"""What a running task knows about its job, and the steps it remembers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal, TypeVar, cast, get_type_hints

import msgspec

from treppe.app.endings import Ending, Unclear
from treppe.errors import Refused, TreppeError
from treppe.job import START_MARK
from treppe.worker import Run

T = TypeVar("T")

FINISHED: Final = "step:"
MAX_NAME: Final = 200
MAX_RESULT: Final = 1 << 20
"""Bytes of a step's result that are kept. It must be kept: without it the step would be done again."""


class Context:
    """Given to a task whose first parameter is annotated with it.

    ``id`` and ``queue`` are the job's; ``attempt`` counts from 1; ``idempotency_key`` is the same on every attempt;
    ``deadline`` is the Unix time of the promise, or None.
    """

    def __init__(self, run: Run) -> None:
        claim = run.claim
        self.id: str = claim.id
        self.queue: str = claim.queue
        self.attempt: int = max(1, claim.claims)  # a probe of a held queue is not counted
        self.idempotency_key: str = claim.id
        self.deadline: float | None = claim.deadline_at
        self._run = run
        self._notes = dict(claim.notes or {})
        self._taken: set[str] = set()

    def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        repeat: Literal["safe", "ask"] = "safe",
        **kwargs: Any,
    ) -> T:
        """Call *function* once for this job: on a later attempt its stored result is returned instead.

        The result is kept as JSON and given back as the function's return annotation says, else as plain data. With
        ``repeat="ask"`` a start mark is written first: if the worker dies inside, the job becomes unclear *at this
        step* instead of doing it again. An async function is awaited::

            contact = ctx.step("crm", create_contact, order)
            invoice = await ctx.step("invoice", create_invoice, order, repeat="ask")

        Each step of a job has a name of its own. TreppeError for a second one of the same name, for a result that
        cannot be kept; Refused when somebody else has taken the job over meanwhile.
        """
        step = _Step(name, repeat, _shape_of(function))
        self._take(step)
        if inspect.iscoroutinefunction(function):
            return cast(T, self._step_async(step, lambda: function(*args, **kwargs)))
        if step.finished in self._notes:
            return cast(T, self._result(step))
        self._start(step)
        try:
            result = _plain(name, function(*args, **kwargs))
        except Ending as end:
            self._take_back(step, end)
            raise
        return cast(T, self._finish(step, result))

    async def _step_async(self, step: _Step, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The same; the loop goes on while the store writes."""
        if step.finished in self._notes:
            return self._result(step)
        await asyncio.to_thread(self._start, step)
        try:
            result = await call()
        except Ending as end:
            await asyncio.to_thread(self._take_back, step, end)
            raise
        return await asyncio.to_thread(self._finish, step, result)

    def _take(self, step: _Step) -> None:
        if not (isinstance(step.name, str) and 0 < len(step.name) <= MAX_NAME):
            raise TreppeError(f"a step needs a name of 1 to {MAX_NAME} characters, not {str(step.name)[:MAX_NAME]!r}")
        if step.repeat not in ("safe", "ask"):
            raise TreppeError(f'step "{step.name}": repeat={step.repeat!r} is not known. Use "safe" or "ask"')
        if step.name in self._taken:
            raise TreppeError(
                f'step "{step.name}" comes twice in this task, and the second time it would only get the result of '
                f'the first. Give each a name of its own, e.g. "{step.name}:2"'
            )
        self._taken.add(step.name)

    def _start(self, step: _Step) -> None:
        """Leave a mark before a step that must not be repeated."""
        if step.started in self._notes:
            raise Unclear(f'step "{step.name}" was started before, and nobody knows whether it happened')
        if step.repeat != "safe":
            self._write(step.started, b"1")

    def _take_back(self, step: _Step, end: Ending) -> None:
        """Wipe the mark off when the step itself says that nothing happened."""
        if end.acted is False and step.started in self._notes:
            self._write(step.started, None)

    def _finish(self, step: _Step, result: Any) -> Any:
        try:
            encoded = msgspec.json.encode(result)
        except Exception as error:  # whatever the result's own code raises when it is read
            raise TreppeError(f'step "{step.name}" is done, but its result is not JSON-like: {error}') from error
        if len(encoded) > MAX_RESULT:
            raise TreppeError(
                f'step "{step.name}" is done, but its result has {len(encoded)} bytes, {MAX_RESULT} are kept. '
                "Put it where you can find it again, and return where"
            )
        self._write(step.finished, encoded)
        return self._result(step)

    def _result(self, step: _Step) -> Any:
        kept = self._notes[step.finished]
        try:
            return msgspec.json.decode(kept, type=step.shape)
        except msgspec.ValidationError:  # it does not keep to its annotation: plain data, the first time as later
            return msgspec.json.decode(kept)

    def _write(self, name: str, value: bytes | None) -> None:
        if not self._run.note(name, value):
            raise Refused(self.id, "somebody else has taken it over meanwhile")
        if value is None:
            del self._notes[name]
        else:
            self._notes[name] = value


class _Step(msgspec.Struct, frozen=True):
    name: Any
    repeat: Any
    shape: Any

    @property
    def started(self) -> str:
        return f"{START_MARK}{self.name}"

    @property
    def finished(self) -> str:
        return f"{FINISHED}{self.name}"


def _shape_of(function: Callable[..., Any]) -> Any:
    """What the function says that it returns, or Any where that cannot be told or not be read from JSON."""
    try:
        shape = get_type_hints(function).get("return", Any)
        msgspec.json.Decoder(shape)
    except Exception:  # annotations are evaluated, and may raise anything
        return Any
    return shape


def _plain(name: str, result: Any) -> Any:
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise TreppeError(
            f'step "{name}": the function gave back something to await. '
            "Hand over the async function itself and its arguments"
        )
    return result
