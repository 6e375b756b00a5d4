"""Who is measured: each module here is one queue behind one small interface, and a new one is one new file."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Protocol

import msgspec

Job = Callable[[float], None]
"""What every job does: it is called with the number that was enqueued, a monotonic time or 0."""


class Variant(msgspec.Struct, frozen=True):
    """One way to run a peer. ``most`` bounds its jobs in one run, where more would take too long or slow it down."""

    title: str
    settings: str
    durable: bool
    most: int = 1_000_000


class Peer(Protocol):
    """A queue on the folder given, made anew in every process that takes part."""

    packages: ClassVar[tuple[str, ...]]
    variants: ClassVar[Mapping[str, Variant]]

    def __init__(self, folder: Path, variant: str, job: Job) -> None:
        """Open it, and make *job* what a worker runs."""

    def fill(self, n: int) -> None:
        """Enqueue *n* jobs in the fastest way there is."""

    def put(self, sent: float) -> None:
        """Enqueue one job; return when the queue has answered for it."""

    def work(self) -> None:
        """Be one worker process, until SIGTERM."""

    def left(self) -> int | None:
        """Jobs that are not at their end, asked by any thread; None where a job is gone as soon as it is taken."""


def names() -> list[str]:
    """Every peer there is a module for."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def peer(name: str) -> type[Peer]:
    """The peer of this name; ImportError when its package is not installed."""
    found: type[Peer] = importlib.import_module(f"{__name__}.{name}").Peer
    return found


def contestants() -> list[str]:
    """Every variant of every peer that is installed, as peer/variant."""
    return [f"{name}/{variant}" for name in names() if name not in absent() for variant in peer(name).variants]


@functools.cache
def absent() -> list[str]:
    """The peers whose packages are not installed."""
    missing = []
    for name in names():
        try:
            peer(name)
        except ModuleNotFoundError as error:
            if error.name and error.name.split(".")[0] in ("bench", "treppe"):
                raise
            missing.append(name)
    return missing


def variant_of(contestant: str) -> Variant:
    """The variant that a contestant's name stands for."""
    name, variant = contestant.split("/")
    return peer(name).variants[variant]
