"""Settings and app put together: which handlers there are, at what pace they go, and who works here."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from treppe.app import Treppe, open_store, pacer_for, place_of
from treppe.app.mirror import mirror
from treppe.config import Destination, Queue, Settings
from treppe.config.parse import without_password
from treppe.errors import ConfigError, StoreUnavailable
from treppe.job import Kind, Outcome
from treppe.policy.pace.flow import DEFAULT_IN_FLIGHT
from treppe.settle import Rules
from treppe.store.protocol import Backlog, Store
from treppe.upkeep import Upkeep
from treppe.worker import Handler, Run, Worker

if TYPE_CHECKING:
    from treppe.delivery.http import Delivery
    from treppe.eyes.alert import Alerts
    from treppe.eyes.measure import Figures

log = logging.getLogger("treppe.run")

UNKNOWN_EVERY: Final = 60.0
"""Seconds between two looks for due jobs whose task nobody here knows."""

AGAIN_AFTER: Final = 1.0
"""Seconds between two looks for what others may have changed."""

MARGIN: Final = 5.0
"""Seconds that a delivery may take beyond its own time limit before it is cut off from outside."""


class Premises:
    """All of one process. Any number of workers and drains may run at once; :meth:`stop` ends them."""

    def __init__(self, settings: Settings, app: Treppe | None) -> None:
        self.settings, self.app = settings, app
        self.pacer = pacer_for(queues_of(settings, app))
        self._workers: set[Worker] = set()
        self._look_for_unknown = time.monotonic() + UNKNOWN_EVERY
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    @property
    def tasks(self) -> list[str]:
        """The names of all tasks that are worked on here, destinations too."""
        return sorted(
            [*(self.app.tasks if self.app else ()), *(one.task for one in self.settings.destinations.values())]
        )

    @contextmanager
    def open(self, patience: float = 0.0) -> Iterator[Store]:
        """The store, open for as long as the block. One that is not available has *patience* seconds to come."""
        store = self._opened_within(patience)
        try:
            yield store
        finally:
            store.close()

    def work(self, store: Store, stop: threading.Event) -> None:
        """Work until *stop* is set; jobs that run then may end."""
        with self._worker(store, Upkeep(store)) as worker:
            if not stop.is_set():
                worker.run()

    def drain(self, store: Store, budget: float) -> dict[str, Any]:
        """Work off what is due; ``stopped`` says why it ended: empty, budget, held, stopping, or unknown
        (what is left is of tasks that are not known here)."""
        until = time.monotonic() + budget
        upkeep = Upkeep(store)
        tally = Drained()
        self._drain_once(store, upkeep, until, tally)
        if self._found_lapses(store, upkeep, until):
            self._drain_once(store, upkeep, until, tally)
        backlog = store.backlog()
        self._tell_unknown(backlog)
        return self._figures_of(tally, backlog, until)

    def stop(self) -> None:
        """End all work in good order; what is started later ends at once."""
        with self._lock:
            self._stopped.set()
            for worker in self._workers:
                worker.stop()

    def figures(self, store: Store) -> Figures:
        """The figures of the store, counted once for everybody in this process."""
        from treppe.eyes.measure import Figures

        return Figures(store, self.pacer)

    def alerts(self, store: Store, figures: Figures) -> Alerts:
        """The rounds that tell people."""
        from treppe.eyes.alert import Alerts

        return Alerts(store, self.settings, figures)

    def _drain_once(self, store: Store, upkeep: Upkeep, until: float, drained: Drained) -> None:
        with self._worker(store, upkeep) as worker:
            tally = worker.drain(max(0.0, until - time.monotonic()))
        drained.done += tally.done
        drained.failed += tally.deferred + tally.dead + tally.unclear
        drained.next_in = worker.next_in

    def _found_lapses(self, store: Store, upkeep: Upkeep, until: float) -> bool:
        """Look after jobs whose worker is gone. Where only drains run, nobody else waits long enough to do it."""
        somebody_stays = bool(self._workers)
        if somebody_stays or time.monotonic() + upkeep.patience >= until or not self._run_on(store, upkeep.patience):
            return False
        lapsed, more = 0, True
        while more:
            done = upkeep.round()
            lapsed, more = lapsed + done.lapsed, done.more and time.monotonic() < until
        return lapsed > 0

    def _run_on(self, store: Store, seconds: float) -> bool:
        """Whether jobs are still running after so many seconds: who lives brings them to an end before."""
        end = time.monotonic() + seconds
        while store.backlog().total("running"):
            left = end - time.monotonic()
            if left <= 0:
                return True
            if self._stopped.wait(min(left, AGAIN_AFTER)):
                return False
        return False

    def _figures_of(self, drained: Drained, backlog: Backlog, until: float) -> dict[str, Any]:
        return {
            "done": drained.done,
            "failed": drained.failed,
            "waiting": backlog.total("waiting") + backlog.total("retrying") + backlog.total("behind"),
            "oldest_age_s": backlog.oldest_age,
            "next_due_in_s": drained.next_in,
            "stopped": self._why_stopped(backlog, time.monotonic() >= until),
        }

    def _why_stopped(self, backlog: Backlog, over: bool) -> str:
        if self._stopped.is_set():
            return "stopping"
        if not backlog.total("waiting"):
            return "empty"
        known = sum(n for task, n in backlog.due_tasks.items() if task in self.tasks)
        return "budget" if over else "held" if known else "unknown"

    def _chores(self, store: Store, upkeep: Upkeep) -> float:
        if time.monotonic() >= self._look_for_unknown:
            self._look_for_unknown = time.monotonic() + UNKNOWN_EVERY
            self._tell_unknown(store.backlog())
        return upkeep.turn()

    def _tell_unknown(self, backlog: Backlog) -> None:
        unknown = {task: n for task, n in backlog.due_tasks.items() if n and task not in self.tasks}
        if unknown:
            shown = ", ".join(f"{task} ({n})" for task, n in sorted(unknown.items())[:10])
            log.warning("due jobs of tasks that are not known here: %s. Start a worker that knows them", shown)

    @contextmanager
    def _worker(self, store: Store, upkeep: Upkeep) -> Iterator[Worker]:
        """A worker for all handlers, with upkeep as its chore."""
        handlers = self.app.handlers() if self.app else {}
        delivery = self._delivery(handlers) if self.settings.destinations else None
        worker = Worker(
            store, handlers, self.pacer, chores=partial(self._chores, store, upkeep), on_trouble=upkeep.trouble
        )
        if delivery is not None:
            worker.loop.on_close(delivery.aclose)
        with self._lock:
            self._workers.add(worker)
            if self._stopped.is_set():
                worker.stop()
        try:
            yield worker
        finally:
            with self._lock:
                self._workers.discard(worker)

    def _delivery(self, handlers: dict[str, Handler]) -> Delivery:
        """The built-in handlers of destinations, for one worker: its connections live in that worker's loop."""
        from treppe.delivery.http import Delivery

        delivery = Delivery(self.settings.destinations)
        for destination in self.settings.destinations.values():
            exchanges = 2 if destination.probe else 1
            handlers[destination.task] = Handler(
                partial(deliver_one, delivery, destination),
                Rules(backoff=destination.backoff),
                exchanges * destination.timeout + MARGIN,
                in_loop=True,
            )
        return delivery

    def _opened_within(self, patience: float) -> Store:
        until = time.monotonic() + patience
        while True:
            try:
                return self._opened()
            except StoreUnavailable as error:
                if time.monotonic() >= until:
                    raise
                log.warning("the store is not there yet, trying again for %.0f s: %s", until - time.monotonic(), error)
                self._stopped.wait(AGAIN_AFTER)

    def _opened(self) -> Store:
        store = self._store()
        try:
            mirror(store, self.app.tasks if self.app else {}, self.settings.destinations.values())
        except BaseException:
            store.close()
            raise
        return store

    def _store(self) -> Store:
        if self.app is None:
            return open_store(self.settings.store)
        refuse_another_store(self.app, self.settings)
        return self.app.store


def refuse_another_store(app: Treppe, settings: Settings) -> None:
    """ConfigError when the app keeps its jobs elsewhere than the settings say: neither would see the other's.

    Settings that say nothing at all leave it to the app.
    """
    theirs = app.place
    if not theirs or settings == Settings(app=settings.app):
        return
    ours = place_of(settings.store)
    if ours != theirs:
        problem = f"the app keeps its jobs in {without_password(theirs)}, the settings say {without_password(ours)}"
        raise ConfigError("store", problem, "Let both name the same")


class Drained(msgspec.Struct):
    """What the parts of one drain did together."""

    done: int = 0
    failed: int = 0
    next_in: float | None = None  # seconds to the next due job


async def deliver_one(delivery: Delivery, destination: Destination, run: Run) -> Outcome:
    """One delivery; a probe asks the harmless GET first, if the destination names one."""
    if run.claim.probe and destination.probe is not None:
        answer = await delivery.probe(destination)
        if answer.kind is not Kind.OK:
            return msgspec.structs.replace(answer, acted=False)
    return await delivery.run(run.claim)


def queues_of(settings: Settings, app: Treppe | None = None) -> dict[str, Queue]:
    """The queues with their pace. A destination whose queue says nothing is called at most 16 times at once."""
    named = {**settings.queues, **(app.queues if app else {})}
    silent = {destination.pace_queue for destination in settings.destinations.values()}
    silent = {name for name in silent if not any(_covers(known, name) for known in named)}
    return named | {name: Queue(name, concurrent=DEFAULT_IN_FLIGHT) for name in silent}


def _covers(known: str, name: str) -> bool:
    return known == name or (known.endswith("*") and name.startswith(known[:-1]))
