"""Who is measured: each module here is one queue behind one small interface, and a new one is one new file.

A module's name ends with the store its jobs lie in. On SQLite a peer is installed beside Treppe; on PostgreSQL it runs
in an environment of its own, so that its module imports it late, and one for Node.js only tells about the program that
lies beside it.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.util import find_spec
from typing import ClassVar, Literal

import msgspec

from bench.environments import Needs, environment
from bench.processes import Stuck

Job = Callable[[float], float]
"""What every job does: it is called with the number that was enqueued, a monotonic time or 0, and says how many seconds
the job has to go on for."""


class Variant(msgspec.Struct, frozen=True):
    """One way to run a peer.

    ``most`` bounds its jobs in one run and ``grows_to`` those that wait, where more would take too long or slow it
    down. The ``limit`` is no queue, but what a bare driver can do.
    """

    title: str
    settings: str
    durable: bool = True
    most: int = 1_000_000
    grows_to: int = 1_000_000
    language: Literal["Python", "Node"] = "Python"
    limit: bool = False


class Queue(ABC):
    """A queue whose jobs lie in a place: a folder for SQLite, a database for PostgreSQL. Made anew in every process.

    On a server, ``needs`` names what it runs with, and ``open`` is SQL: is there a job that is not at its end?
    """

    packages: ClassVar[tuple[str, ...]] = ()
    variants: ClassVar[Mapping[str, Variant]]
    needs: ClassVar[Needs | None] = None
    open: ClassVar[str] = ""

    def __init__(self, place: str, variant: str, job: Job) -> None:
        """*job* is what a worker runs."""
        self.place, self.variant, self.job = place, variant, job
        self.begin()

    def begin(self) -> None:  # noqa: B027 (most need nothing)
        """What has to be done first in every process."""

    def prepare(self) -> None:  # noqa: B027
        """Make the tables in a new place."""

    def connect(self) -> None:  # noqa: B027
        """Be ready to enqueue, so that the first job takes no longer than the next one."""

    @abstractmethod
    def fill(self, n: int, delay: float = 0.0) -> None:
        """Enqueue *n* jobs, due after *delay* seconds, in the fastest way there is."""

    @abstractmethod
    def put(self, sent: float) -> None:
        """Enqueue one job; return when the queue has answered for it."""

    @abstractmethod
    def work(self) -> None:
        """Be one worker process, until SIGTERM."""

    def left(self) -> int | None:
        """Jobs that are not at their end; None where a job is gone as soon as it is taken."""
        return None


class AsyncQueue(Queue):
    """One whose functions are coroutines: ``many``, ``one``, ``serve``; on one loop, uvloop's where it is there."""

    def begin(self) -> None:
        """A loop for the life of this process."""
        self._runner = asyncio.Runner(loop_factory=_loop)

    def prepare(self) -> None:
        self._runner.run(self.make())

    def connect(self) -> None:
        self._runner.run(self.enter())

    def fill(self, n: int, delay: float = 0.0) -> None:
        self._runner.run(self.many(n, delay))

    def put(self, sent: float) -> None:
        self._runner.run(self.one(sent))

    def work(self) -> None:
        self._runner.run(self.serve())

    async def make(self) -> None:
        """The coroutine of :meth:`prepare`."""

    async def enter(self) -> None:
        """The coroutine of :meth:`connect`."""

    @abstractmethod
    async def many(self, n: int, delay: float) -> None:
        """The coroutine of :meth:`fill`."""

    @abstractmethod
    async def one(self, sent: float) -> None:
        """The coroutine of :meth:`put`."""

    @abstractmethod
    async def serve(self) -> None:
        """The coroutine of :meth:`work`."""

    async def run_job(self, sent: float) -> None:
        """Be the job that was enqueued with that number."""
        if lasts := self.job(sent):
            await asyncio.sleep(lasts)


class NodeQueue(Queue):
    """One for Node.js: its ``program``, a file beside its module, plays the roles."""

    program: ClassVar[str]

    def fill(self, n: int, delay: float = 0.0) -> None:
        raise NotImplementedError

    def put(self, sent: float) -> None:
        raise NotImplementedError

    def work(self) -> None:
        raise NotImplementedError


def chunks(n: int, size: int) -> Iterator[int]:
    """*n* in pieces of *size*.

    >>> list(chunks(2500, 1000))
    [1000, 1000, 500]
    """
    for start in range(0, n, size):
        yield min(size, n - start)


def names(store: str) -> list[str]:
    """Every peer there is a module for."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name.endswith(f"_{store}"))


def peer(name: str) -> type[Queue]:
    """The peer of this name; ImportError when its package is not installed."""
    found: type[Queue] = importlib.import_module(f"{__name__}.{name}").Peer
    return found


def contestants(store: str, wanted: Collection[str] = ()) -> list[str]:
    """Every variant of every peer that can run, as peer/variant; with *wanted*, of Treppe and these peers only."""
    here = [name for name in names(store) if name not in absent(store)]
    taken = [name for name in here if not wanted or name in wanted or name.startswith("treppe_")]
    return [f"{name}/{way}" for name in taken for way in peer(name).variants]


@functools.cache
def absent(store: str) -> dict[str, str]:
    """The peers that cannot run here, and why; environments that are missing are made."""
    missing = {}
    for name in names(store):
        try:
            if needs := peer(name).needs:
                environment(name, needs)
        except ModuleNotFoundError as error:
            if error.name and error.name.split(".")[0] in ("bench", "treppe"):
                raise
            missing[name] = f"{error.name} is not installed"
        except Stuck as error:
            missing[name] = str(error)
    return missing


def variant_of(contestant: str) -> Variant:
    """The variant that a contestant's name stands for."""
    name, variant = contestant.split("/")
    return peer(name).variants[variant]


def _loop() -> asyncio.AbstractEventLoop:
    if find_spec("uvloop"):
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()
