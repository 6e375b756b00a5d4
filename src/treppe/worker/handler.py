"""A handler, one run of it, and how whatever it does becomes an outcome."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, cast

import msgspec

from treppe.job import Claim, Kind, Outcome
from treppe.settle import DONE, Rules

log = logging.getLogger("treppe.worker")

_BEGINNING = threading.Lock()  # a run is begun or given up, never both


class Handler(msgspec.Struct, frozen=True):
    """What to do with the jobs of one task. ``run`` is a plain function, or async with ``in_loop``.

    ``timeout`` is the time limit of one run in seconds.
    """

    run: Callable[[Run], Outcome] | Callable[[Run], Awaitable[Outcome]]
    rules: Rules = Rules()
    timeout: float | None = None
    in_loop: bool = False


class Notes(Protocol):
    """The one thing a running job may ask of the store."""

    def note(self, claim: Claim, name: str, value: bytes | None) -> bool: ...


class Run(msgspec.Struct, eq=False):
    """One job in hand. Times are monotonic; ``started`` is None while it lies ready.

    A paced job starts ``not_before``, and ``gap`` seconds or more after the one that was granted before it.
    """

    claim: Claim
    handler: Handler
    store: Notes
    not_before: float = 0.0
    gap: float = 0.0
    taken: float = 0.0
    started: float | None = None
    ended: float = 0.0
    outcome: Outcome | None = None
    abandoned: bool = False

    def note(self, name: str, value: bytes | None) -> bool:
        """Write a note of this job; False when the claim is lost."""
        return self.store.note(self.claim, name, value)

    def begin(self) -> bool:
        """It starts now; False when it was given up before, and must not start any more."""
        with _BEGINNING:
            if not self.abandoned:
                self.started = time.monotonic()
            return not self.abandoned

    def abandon(self) -> bool:
        """Nobody waits for it any more; True when it had begun."""
        with _BEGINNING:
            self.abandoned = True
            return self.started is not None

    def overdue(self, now: float) -> bool:
        """True when it has run for longer than its time limit."""
        limit = self.handler.timeout
        return limit is not None and self.started is not None and now - self.started > limit


def runs_of(claims: Iterable[Claim], handlers: Mapping[str, Handler], store: Notes) -> list[Run]:
    """What to do for claims that came just now; paced ones keep the gaps that they were granted with."""
    now = time.monotonic()
    planned: dict[str, float] = {}
    runs = []
    for claim in claims:
        run = Run(claim, handlers[claim.task], store)
        if claim.start_at > claim.claimed_at:
            run.not_before = now + claim.start_at - claim.claimed_at
        if claim.start_at > 0.0:
            run.gap = claim.start_at - planned.get(claim.queue, claim.start_at)
            planned[claim.queue] = claim.start_at
        runs.append(run)
    return runs


RELEASED = Outcome(Kind.RELEASED, "given back before it started", acted=False)


def run_plainly(run: Run) -> Outcome:
    """Call the handler; whatever it raises becomes an outcome, also what is no Exception."""
    try:
        outcome: Any = run.handler.run(run)
        return _checked(outcome)
    except BaseException as error:
        return _broken(error)


async def run_in_loop(run: Run) -> Outcome:
    """The same for an async handler, within its time limit. Only a cancel from outside goes through."""
    limit = run.handler.timeout
    try:
        if limit is None:
            return _checked(await _begun(run))
        async with asyncio.timeout(limit) as timeout:
            return _checked(await _begun(run))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _broken(error)
    except BaseException as error:
        return timed_out(limit) if limit is not None and timeout.expired() else _broken(error)


def _begun(run: Run) -> Awaitable[Any]:
    coroutine: Any = run.handler.run(run)
    return cast(Awaitable[Any], coroutine)


def timed_out(limit: float | None) -> Outcome:
    """The outcome of a run that took too long; nobody knows whether it acted."""
    return Outcome(Kind.FAILED, f"took longer than its time limit of {limit or 0:g} s", acted=None)


def overran(run: Run, begun: bool) -> Outcome:
    """The same, for a run that is given up from outside."""
    return timed_out(run.handler.timeout)


def released(why: str, begun: bool) -> Outcome:
    """Given back; if it had begun, nobody knows whether it acted."""
    return Outcome(Kind.RELEASED, why, acted=None if begun else False)


def _checked(outcome: Any) -> Outcome:
    """The outcome as it can be written: whatever else a handler hands over is a failure of its own."""
    if not isinstance(outcome, Outcome):
        return Outcome(Kind.FAILED, f"the handler returned {type(outcome).__name__} instead of an Outcome", acted=None)
    if outcome is DONE:
        return outcome
    try:
        plain = msgspec.to_builtins(outcome, builtin_types=(bytes,))
        checked: Outcome = msgspec.convert(plain, Outcome, builtin_types=(bytes,))
        return checked
    except (TypeError, ValueError, RecursionError) as error:
        return Outcome(Kind.FAILED, f"the handler returned an Outcome that cannot be: {error}", acted=None)


def _broken(error: BaseException) -> Outcome:
    # A handler turns its own errors into outcomes; what arrives here slipped through it.
    log.error("a handler raised %s", type(error).__name__, exc_info=error)
    return Outcome(Kind.FAILED, f"{type(error).__name__}: {_text_of(error)}", acted=None)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # code of somebody else's
        return "(its text could not be read)"
