"""A handler, one run of it, and how whatever it does becomes an outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from treppe.job import Claim, Kind, Outcome
from treppe.settle import Rules

log = logging.getLogger("treppe.worker")


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
    started: float | None = None
    ended: float = 0.0
    outcome: Outcome | None = None
    abandoned: bool = False

    def note(self, name: str, value: bytes | None) -> bool:
        """Write a note of this job; False when the claim is lost."""
        return self.store.note(self.claim, name, value)

    def overdue(self, now: float) -> bool:
        """True when it has run for longer than its time limit."""
        limit = self.handler.timeout
        return limit is not None and self.started is not None and now - self.started > limit


RELEASED = Outcome(Kind.RELEASED, "given back before it started", acted=False)


def run_plainly(run: Run) -> Outcome:
    """Call the handler; whatever it raises becomes an outcome, also what is no Exception."""
    try:
        outcome: Any = run.handler.run(run)
        return _checked(outcome)
    except BaseException as error:
        return _broken(error)


async def run_in_loop(run: Run) -> Outcome:
    """The same for an async handler, within its time limit."""
    limit = run.handler.timeout
    outcome: Any
    try:
        if limit is None:
            outcome = run.handler.run(run)
            return _checked(await outcome)
        async with asyncio.timeout(limit):
            outcome = run.handler.run(run)
            return _checked(await outcome)
    except TimeoutError:
        return timed_out(limit)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return _broken(error)


def timed_out(limit: float | None) -> Outcome:
    """The outcome of a run that took too long; nobody knows whether it acted."""
    return Outcome(Kind.FAILED, f"took longer than its time limit of {limit:g} s", acted=None)


def _checked(outcome: Any) -> Outcome:
    if isinstance(outcome, Outcome):
        return outcome
    return Outcome(Kind.FAILED, f"the handler returned {type(outcome).__name__} instead of an Outcome", acted=None)


def _broken(error: BaseException) -> Outcome:
    # A handler turns its own errors into outcomes; what arrives here slipped through it.
    log.error("a handler raised %s", type(error).__name__, exc_info=error)
    return Outcome(Kind.FAILED, f"{type(error).__name__}: {_text_of(error)}", acted=None)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its text could not be read)"
