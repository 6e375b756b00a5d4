"""What the worker's modules get instead of threads, clocks, dice and bells, so that a kernel decides everything.

The worker itself is the real one, unchanged: its engine, its crew of threads, its lease. Only the names that its
modules look up (``time``, ``threading``, ``random`` …) stand for something else while a world runs.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from tests.sim.kernel import Kernel, Signal, Strand
from treppe.worker import crew, engine, handler, lease, suspects, threads, turn


@contextmanager
def installed(kernel: Kernel) -> Iterator[None]:
    """As long as the block, workers live in the kernel's time."""
    time = SimpleNamespace(monotonic=lambda: kernel.now, sleep=kernel.sleep)
    threading_ = SimpleNamespace(
        Thread=lambda **what: Thread(kernel, **what), Event=lambda: Signal(kernel), Lock=threading.Lock
    )
    names: list[tuple[Any, str, Any]] = [
        *((module, "time", time) for module in (crew, engine, handler, lease, suspects, threads, turn)),
        *((module, "threading", threading_) for module in (crew, engine, lease, threads)),
        (engine, "random", kernel.random),
        (engine, "Bell", lambda: Bell(kernel)),
        (threads, "SimpleQueue", lambda: Queue(kernel)),
        (lease, "secrets", SimpleNamespace(randbits=kernel.random.getrandbits)),
        *((module, "time", SimpleNamespace(perf_counter=Stopwatch(kernel))) for module in _stores_with_marks()),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in names]
    try:
        for module, name, value in names:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def _stores_with_marks() -> list[Any]:
    """The modules, as far as they are loaded, that measure how long a scan takes."""
    names = ("sqlite.scanning", "postgres.scanning", "postgres.claiming")
    return [sys.modules[f"treppe.store.{name}"] for name in names if f"treppe.store.{name}" in sys.modules]


class Thread:
    """Of :class:`threading.Thread` what the worker uses: a strand of the process that starts it."""

    def __init__(self, kernel: Kernel, target: Callable[..., object], name: str = "", daemon: bool = True) -> None:
        self._kernel, self._target, self._name = kernel, target, name
        self._ended = Signal(kernel)
        self._strand: Strand | None = None

    def start(self) -> None:
        process = self._kernel._mine().process
        self._strand = self._kernel.spawn(process, self._run, self._name)

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)

    def is_alive(self) -> bool:
        return self._strand is not None and not self._strand.ended

    def _run(self) -> None:
        try:
            self._target()
        finally:
            self._ended.set()


class Queue:
    """:class:`queue.SimpleQueue`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._items: deque[Any] = deque()
        self._filled = Signal(kernel)

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._filled.pulse()

    def get(self) -> Any:
        self._kernel.check_alive()
        while not self._items:
            self._filled.wait()
        return self._items.popleft()


class Bell:
    """:class:`treppe.store.bell.Bell`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.signal = Signal(kernel)

    def ring(self) -> None:
        self._kernel.check_alive()
        self.signal.set()

    def clear(self) -> None:
        self._kernel.check_alive()
        self.signal.clear()

    def wait(self, timeout: float, also: int | None = None) -> bool:
        return self.signal.wait(max(0.0, timeout))

    @property
    def rings(self) -> bool:
        return self.signal.is_set()

    def close(self) -> None:
        self.signal.clear()


class Stopwatch:
    """A performance counter for which one look in fifty takes long: the store's low-water marks go by it."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._lost = 0.0

    def __call__(self) -> float:
        self._lost += 0.005 if self._kernel.random.random() < 0.02 else 0.0
        return self._kernel.now + self._lost
