"""The figures: counted once for everybody who asks, and shown with their age."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

from treppe.policy import pace
from treppe.store.protocol import Backlog, QueueBacklog, Store

KEPT: Final = 5.0
"""Seconds a count may be shown before it is taken again."""

FLOW: Final = "flow:"
"""How the journal names of flows begin; the queue's name follows."""


class QueueFigures(msgspec.Struct, frozen=True):
    """One queue: how many jobs wait for what, and whether it is held. Times are Unix seconds.

    ``why`` is a :class:`treppe.policy.pace.Why` as text, empty when the queue is open; ``by`` and ``note`` tell of a
    human pause.
    """

    queue: str
    waiting: int = 0
    scheduled: int = 0
    retrying: int = 0
    behind: int = 0
    running: int = 0
    unclear: int = 0
    handed_over: int = 0
    dead: int = 0
    oldest_age_s: float | None = None
    held: bool = False
    why: str = ""
    since: float | None = None
    resumes_at: float | None = None
    openness: float = 1.0
    by: str = ""
    note: str = ""
    paced: bool = False  # it has a rate or a concurrency of its own

    @property
    def paused(self) -> bool:
        """Held by a human, until a human resumes it."""
        return self.why == pace.Why.PAUSED


class Summary(msgspec.Struct, frozen=True):
    """All figures, taken at ``at`` by the store's clock, ``age_s`` seconds ago."""

    at: float
    age_s: float
    open: int
    oldest_age_s: float | None
    accepted: int
    done: int
    dead: int
    unclear: int
    queues: tuple[QueueFigures, ...] = ()

    def queue(self, name: str) -> QueueFigures:
        """The figures of one queue; all zero when there is nothing to say about it."""
        return next((queue for queue in self.queues if queue.queue == name), QueueFigures(name))


class Figures:
    """The figures of one store. One count serves all callers for :data:`KEPT` seconds.

    ``clock`` measures the age only, so it need not be the store's. Raises :class:`treppe.errors.StoreError`.
    """

    def __init__(
        self,
        store: Store,
        pacer: pace.Pacer,
        *,
        keep: float = KEPT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._pacer, self._keep, self._clock = store, pacer, keep, clock
        self._lock = threading.Lock()
        self._taken: tuple[float, Summary] | None = None

    def summary(self) -> Summary:
        """The figures, at most ``keep`` seconds old. While one caller counts, the others wait for the same count."""
        with self._lock:
            now = self._clock()
            if self._taken is None or now - self._taken[0] >= self._keep:
                self._taken = (now, self._count())
            taken_at, summary = self._taken
            return msgspec.structs.replace(summary, age_s=now - taken_at)

    def forget(self) -> None:
        """Count anew for the next caller: something was just changed by hand."""
        with self._lock:
            self._taken = None

    def _count(self) -> Summary:
        backlog = self._store.backlog()
        flows = self._store.journal.scan(FLOW)
        return Summary(
            at=backlog.at,
            age_s=0.0,
            open=backlog.open,
            oldest_age_s=backlog.oldest_age,
            accepted=backlog.accepted,
            done=backlog.done,
            dead=backlog.total("dead"),
            unclear=backlog.total("unclear"),
            queues=self._queues(backlog, {name.removeprefix(FLOW): flow for name, flow in flows.items()}),
        )

    def _queues(self, backlog: Backlog, flows: dict[str, bytes]) -> tuple[QueueFigures, ...]:
        counted = {queue.queue: queue for queue in backlog.queues}
        names = sorted(counted.keys() | flows.keys())
        return tuple(self._queue(counted.get(name, QueueBacklog(name)), flows.get(name), backlog.at) for name in names)

    def _queue(self, counted: QueueBacklog, flow: bytes | None, now: float) -> QueueFigures:
        seen = pace.describe(pace.decode(flow), self._pacer.limits(counted.queue), now)
        return QueueFigures(
            **{name: getattr(counted, name) for name in _COUNTS},
            oldest_age_s=counted.oldest_age,
            held=seen.held,
            why=str(seen.why or ""),
            since=seen.since,
            resumes_at=seen.resumes_at,
            openness=seen.openness,
            by=seen.by,
            note=seen.note,
            paced=self._pacer.limited(counted.queue),
        )


_COUNTS: Final = tuple(name for name in QueueBacklog.__struct_fields__ if name != "oldest_age")
