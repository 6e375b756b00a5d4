"""What a running task knows about its job, and the steps it remembers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import msgspec

from treppe.app.endings import Unclear
from treppe.errors import Refused, TreppeError
from treppe.worker import Run

T = TypeVar("T")

STARTED = "step-started:"
FINISHED = "step:"


class Context:
    """Given to a task whose first parameter is annotated with it.

    ``attempt`` counts from 1; ``idempotency_key`` is the same on every attempt; ``deadline`` is the Unix time
    of the promise, or None.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        claim = run.claim
        self.id: str = claim.id
        self.queue: str = claim.queue
        self.attempt: int = claim.claims
        self.idempotency_key: str = claim.id
        self.deadline: float | None = claim.deadline_at

    def step(
        self, name: str, function: Callable[..., T], *args: Any, repeat: Literal["safe", "ask"] = "safe", **kwargs: Any
    ) -> T:
        """Call *function* once for this job: on a later attempt its stored result is returned instead.

        The result must be JSON-like; it comes back as plain data. With ``repeat="ask"`` a start mark is written
        first: if the worker dies inside, the job becomes unclear *at this step* instead of doing it again.
        Async functions are awaited::

            contact = ctx.step("crm", create_contact, order)
            invoice = await ctx.step("invoice", create_invoice, order, repeat="ask")
        """
        if inspect.iscoroutinefunction(function):
            return cast(T, self._step_async(name, repeat, function, args, kwargs))
        known, result = self._remembered(name)
        if known:
            return cast(T, result)
        self._mark_start(name, repeat)
        return cast(T, self._remember(name, function(*args, **kwargs)))

    async def _step_async(self, name: str, repeat: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        known, result = self._remembered(name)
        if known:
            return result
        self._mark_start(name, repeat)
        return self._remember(name, await function(*args, **kwargs))

    def _remembered(self, name: str) -> tuple[bool, Any]:
        notes = self._run.claim.notes or {}
        stored = notes.get(FINISHED + name)
        return (False, None) if stored is None else (True, msgspec.json.decode(stored))

    def _mark_start(self, name: str, repeat: str) -> None:
        if repeat == "safe":
            return
        if STARTED + name in (self._run.claim.notes or {}):
            raise Unclear(f'step "{name}" was started before, and nobody knows whether it happened')
        self._write(STARTED + name, b"1")

    def _remember(self, name: str, result: Any) -> Any:
        try:
            encoded = msgspec.json.encode(result)
        except TypeError as error:
            raise TreppeError(f'the result of step "{name}" is not JSON-like: {error}') from error
        self._write(FINISHED + name, encoded)
        return msgspec.json.decode(encoded)

    def _write(self, name: str, value: bytes) -> None:
        if not self._run.note(name, value):
            raise Refused(self.id, "somebody else has taken it over meanwhile")
        self._run.claim.notes = {**(self._run.claim.notes or {}), name: value}
