"""The ways to run: everything in one process, workers, or a drain for a scheduler. All are the same claim loop."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

from treppe.app import Treppe
from treppe.app.premises import Premises
from treppe.config import Settings

log = logging.getLogger("treppe.run")

OBJECTS = 20_000
"""New objects between two looks for cycles that nobody can reach."""

PATIENCE = 60.0
"""Seconds that what runs for long waits for its store at the start: a database may be up later than we are."""


def up(settings: Settings, app: Treppe | None = None, *, with_worker: bool = True) -> None:
    """Door, worker and board in one process, until SIGINT or SIGTERM. Blocks.

    ConfigError when the address cannot be had, StoreError when the store cannot be opened.
    """
    from treppe.app.front import front
    from treppe.door.server import listen, serve

    premises = Premises(settings, app)
    with closing(listen(settings.web.host, settings.web.port)) as listener, premises.open(PATIENCE) as store:
        figures = premises.figures(store)
        beside: list[Beside] = [premises.alerts(store, figures).watch]
        if with_worker:
            beside.append(partial(premises.work, store))
        with stopped_by_signals() as stop, running_beside(beside, stop, premises.stop):
            entrance = front(settings, store, figures, partial(premises.drain, store))
            collect_garbage_less_often()
            try:
                serve(entrance.app, settings.web, _announce, stop, listener, shortcuts=entrance.shortcuts)
            finally:
                entrance.close()


def work(settings: Settings, app: Treppe | None = None) -> None:
    """A worker, until SIGINT or SIGTERM: running jobs end, the rest is given back. Blocks."""
    premises = Premises(settings, app)
    with premises.open(PATIENCE) as store:
        alerts = premises.alerts(store, premises.figures(store))
        log.info("working on %s", ", ".join(premises.tasks) or "nothing: there is no task or destination")
        collect_garbage_less_often()
        with stopped_by_signals() as stop, running_beside([alerts.watch], stop, premises.stop):
            premises.work(store, stop)


def drain(settings: Settings, app: Treppe | None, budget: float) -> dict[str, Any]:
    """Work off what is due within *budget* seconds; the figures for whoever called. SIGTERM ends it sooner."""
    premises = Premises(settings, app)
    with premises.open() as store:
        with stopped_by_signals() as stop, running_beside([], stop, premises.stop):
            result = premises.drain(store, budget)
        premises.alerts(store, premises.figures(store)).round()
        return result


def collect_garbage_less_often() -> None:
    """What is there at the start stays; what a webhook or a job leaves behind is hardly ever a cycle.

    By default Python looks for cycles each 700 objects: a tenth of all time at the door went there.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])


Beside = Callable[[threading.Event], object]
"""Something that goes on in a thread of its own until the event is set."""


@contextmanager
def running_beside(others: list[Beside], stop: threading.Event, on_stop: Callable[[], None]) -> Iterator[None]:
    """Run *others* in threads as long as the block; whoever ends first, block or thread, stops all of them.

    ``on_stop`` is called once *stop* is set. What went wrong in a thread is raised here, when all have ended.
    """
    with ThreadPoolExecutor(len(others) + 1, "treppe-beside") as threads:
        ends = [threads.submit(_until_the_end, other, stop) for other in others]
        threads.submit(_when_set, stop, on_stop)
        try:
            yield
        finally:
            stop.set()
    for end in ends:
        end.result()


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


def _until_the_end(other: Beside, stop: threading.Event) -> None:
    try:
        other(stop)
    finally:
        stop.set()


def _when_set(stop: threading.Event, act: Callable[[], None]) -> None:
    stop.wait()
    act()


def _announce(host: str, port: int) -> None:
    shown = f"[{host}]" if ":" in host else host
    sys.stdout.write(f"Treppe is up: http://{shown}:{port}/board/\n")
    sys.stdout.flush()
