"""The ways to run: everything in one process, workers, or a drain for a scheduler. All are the same claim loop."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec

from treppe.app import Treppe, open_store, pacer_for
from treppe.config import Destination, Queue, Settings
from treppe.errors import ConfigError
from treppe.job import Kind, Outcome
from treppe.policy.pace.flow import DEFAULT_IN_FLIGHT
from treppe.settle import Rules
from treppe.store.protocol import Store
from treppe.upkeep import Upkeep
from treppe.worker import Handler, Run, Worker

if TYPE_CHECKING:
    from treppe.delivery.http import Delivery
    from treppe.eyes.measure import Figures

log = logging.getLogger("treppe.run")


def up(settings: Settings, app: Treppe | None = None, *, with_worker: bool = True) -> None:
    """Door, worker and board in one process, until SIGINT or SIGTERM. Blocks."""
    from treppe.app.front import front
    from treppe.door.server import listen, serve

    listener = listen(settings.web.host, settings.web.port)
    premises = Premises(settings, app)
    with stopped_by_signals() as stop, premises.open() as store:
        figures = premises.figures(store)
        workers = [premises.worker(store)] if with_worker else []
        threads = [_started(partial(_run_worker, worker, stop), "treppe-worker") for worker in workers]
        threads.append(_started(partial(premises.alerts(store, figures).watch, stop), "treppe-alerts"))
        asgi, close = front(settings, store, figures, partial(premises.drain, store))
        try:
            serve(asgi, settings.web, _announce, stop, listener)
        finally:
            stop.set()
            for worker in workers:
                worker.stop()
            close()
            for thread in threads:
                thread.join()


def work(settings: Settings, app: Treppe | None = None) -> None:
    """A worker, until SIGINT or SIGTERM: running jobs end, the rest is given back. Blocks."""
    premises = Premises(settings, app)
    with stopped_by_signals() as stop, premises.open() as store:
        worker = premises.worker(store)
        alerts = _started(partial(premises.alerts(store, premises.figures(store)).watch, stop), "treppe-alerts")
        stopper = _started(partial(_stop_on, stop, worker), "treppe-stop")
        log.info("working on %s", ", ".join(sorted(premises.handlers)) or "nothing: there is no task or destination")
        try:
            worker.run()
        finally:
            stop.set()
            stopper.join()
            alerts.join()


def drain(settings: Settings, app: Treppe | None, budget: float) -> dict[str, Any]:
    """Work off what is due within *budget* seconds; the figures for whoever called."""
    premises = Premises(settings, app)
    with premises.open() as store:
        result = premises.drain(store, budget)
        premises.alerts(store, premises.figures(store)).round()
        return result


class Premises:
    """Settings and app put together: which handlers there are, and at what pace they go."""

    def __init__(self, settings: Settings, app: Treppe | None) -> None:
        self.settings, self.app = settings, app
        self.queues = {**queues_of(settings), **(app.queues if app else {})}
        self.pacer = pacer_for(self.queues)
        self.handlers: dict[str, Handler] = {} if app is None else app.handlers()
        self.delivery: Delivery | None = None
        if settings.destinations:
            self._take_on_destinations()

    @contextmanager
    def open(self) -> Iterator[Store]:
        """The store, open for as long as the block."""
        store = self._store()
        try:
            yield store
        finally:
            store.close()

    def worker(self, store: Store) -> Worker:
        """A worker for all handlers, with upkeep as its chore."""
        upkeep = Upkeep(store)
        worker = Worker(store, self.handlers, self.pacer, chores=lambda: upkeep.round().more, on_trouble=upkeep.trouble)
        if self.delivery is not None:
            worker.loop.on_close(self.delivery.aclose)
        return worker

    def drain(self, store: Store, budget: float) -> dict[str, Any]:
        """Work off what is due; ``stopped`` says why it ended: empty, budget or held."""
        began = time.monotonic()
        worker = self.worker(store)
        tally = worker.drain(budget)
        backlog = store.backlog()
        waiting = backlog.total("waiting") + backlog.total("retrying") + backlog.total("behind")
        over = time.monotonic() - began >= budget
        return {
            "done": tally.done,
            "failed": tally.deferred + tally.dead + tally.unclear,
            "waiting": waiting,
            "oldest_age_s": backlog.oldest_age,
            "next_due_in_s": worker.next_in,
            "stopped": "budget" if over else "held" if backlog.total("waiting") else "empty",
        }

    def figures(self, store: Store) -> Figures:
        """The figures of the store, counted once for everybody in this process."""
        from treppe.eyes.measure import Figures

        return Figures(store, self.pacer)

    def alerts(self, store: Store, figures: Figures) -> Any:
        """The rounds that tell people."""
        from treppe.eyes.alert import Alerts

        return Alerts(store, self.settings, figures)

    def _store(self) -> Store:
        if self.app is None:
            return open_store(self.settings.store)
        store = self.app.store
        mine, theirs = self.settings.store, getattr(store, "path", None)
        if mine != Settings().store and theirs is not None and not mine.endswith(theirs):
            raise ConfigError(
                "store", f"the app keeps its jobs in {theirs}, the settings say {mine}", "Let both name the same"
            )
        return store

    def _take_on_destinations(self) -> None:
        from treppe.delivery.http import Delivery

        self.delivery = Delivery(self.settings.destinations)
        for destination in self.settings.destinations.values():
            deliver = partial(deliver_one, self.delivery, destination)
            self.handlers[destination.task] = Handler(deliver, Rules(backoff=destination.backoff), None, in_loop=True)


async def deliver_one(delivery: Delivery, destination: Destination, run: Run) -> Outcome:
    """One delivery; a probe asks the harmless GET first, if the destination names one."""
    if run.claim.probe and destination.probe is not None:
        answer = await delivery.probe(destination)
        if answer.kind is not Kind.OK:
            return msgspec.structs.replace(answer, acted=False)
    return await delivery.run(run.claim)


def queues_of(settings: Settings) -> dict[str, Queue]:
    """The queues with their pace. A destination whose queue says nothing is called at most 16 times at once."""
    named = dict(settings.queues)
    for destination in settings.destinations.values():
        name = destination.pace_queue
        if name not in named:
            named[name] = Queue(name, concurrent=DEFAULT_IN_FLIGHT)
    return named


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; the second one ends the process at once."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    before: dict[int, Any] = {}
    with suppress(ValueError):  # not in the main thread: whoever runs us there looks after signals
        before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_worker(worker: Worker, stop: threading.Event) -> None:
    try:
        worker.run()
    except Exception:
        log.exception("the worker ended")
        raise
    finally:
        stop.set()


def _stop_on(stop: threading.Event, worker: Worker) -> None:
    stop.wait()
    worker.stop()


def _started(work: Callable[[], object], name: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=name)
    thread.start()
    return thread


def _announce(host: str, port: int) -> None:
    shown = f"[{host}]" if ":" in host else host
    sys.stdout.write(f"Treppe is up: http://{shown}:{port}/board/\n")
    sys.stdout.flush()
