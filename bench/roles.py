"""What a child process of a measure does: `python -m bench.roles ROLE PART`. For peers on Node.js: peers/roles.mjs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench import peers
from bench.environments import environment
from bench.jobs import Counting, Noting
from bench.peers import Job, NodeQueue, Queue, peer
from bench.processes import Child, module


class Part(msgspec.Struct):
    """Who takes part, and in what. ``job`` is what a worker runs: ``count``, ``note`` or ``hold``.

    ``place`` is where the jobs lie, ``folder`` what all who take part share, ``delay`` what a fill schedules its jobs
    by, and ``pause`` lies between two puts, both in seconds.
    """

    contestant: str
    place: str
    folder: str
    n: int = 0
    pause: float = 0.0
    delay: float = 0.0
    job: str = "count"
    file: str = "notes"

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.folder)

    @property
    def notes(self) -> Path:
        """Where the jobs of this part note their starts."""
        return self.path / self.file


class Took(msgspec.Struct):
    """So many jobs were enqueued in so many seconds."""

    n: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Jobs enqueued a second."""
        return self.n / self.seconds


def start(role: str, part: Part) -> Child:
    """A process in this role, in the peer's environment; one of a peer with its own environment is ended with kill."""
    name = part.contestant.partition("/")[0]
    needs, told = peer(name).needs, msgspec.json.encode(part).decode()
    called = f"the process of {part.contestant} that is to {role}"
    if not needs:
        return module("bench.roles", role, told, called=called)
    made, queue = environment(name, needs), peer(name)
    if issubclass(queue, NodeQueue):
        script = str(Path(peers.__file__).parent / queue.program)
        packages = {"BENCH_PACKAGES": str(made.folder)}
        return Child(str(made.node), script, role, told, name=called, env=packages, gently=False)
    return Child(str(made.python), "-m", "bench.roles", role, told, name=called, gently=False)


def enqueue(role: str, part: Part, seconds: float = 600.0) -> Took:
    """Let a process fill or put, and wait until it has."""
    with start(role, part) as child:
        return msgspec.json.decode(child.answer(seconds), type=Took)


def prepare(part: Part) -> None:
    """Make the tables."""
    _queue_of(part, _nothing).prepare()


def fill(part: Part) -> None:
    """Enqueue ``n`` jobs in bulk."""
    _timed(part, part.n, lambda queue: queue.fill(part.n, part.delay))


def put(part: Part) -> None:
    """Enqueue ``n`` jobs one by one, ``pause`` seconds apart. The first one is slower in every client: not timed."""

    def each(queue: Queue) -> None:
        for _ in range(part.n - 1):
            queue.put(time.monotonic())
            if part.pause:
                time.sleep(part.pause)

    _timed(part, part.n - 1, each, first=lambda queue: queue.put(time.monotonic()))


def work(part: Part) -> None:
    """Be a worker until SIGTERM."""
    job: Job = Counting(part.path) if part.job == "count" else Noting(part.notes, part.job == "hold")
    _queue_of(part, job).work()


def _timed(part: Part, n: int, enqueue: Callable[[Queue], None], first: Callable[[Queue], None] | None = None) -> None:
    queue = _queue_of(part, _nothing)
    queue.connect()
    if first:
        first(queue)
    began = time.perf_counter()
    enqueue(queue)
    took = Took(max(n, 1), time.perf_counter() - began)
    sys.stdout.write(msgspec.json.encode(took).decode() + "\n")
    sys.stdout.flush()
    os._exit(0)  # a client's own threads need not come to an end


def _nothing(sent: float) -> float:
    """Nobody carries this out."""
    return 0.0


def _queue_of(part: Part, job: Job) -> Queue:
    name, variant = part.contestant.split("/")
    return peer(name)(part.place, variant, job)


ROLES = {role.__name__: role for role in (prepare, fill, put, work)}

if __name__ == "__main__":
    ROLES[sys.argv[1]](msgspec.json.decode(sys.argv[2], type=Part))
