"""What a child process of a measure does: `python -m bench.roles ROLE PART`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.jobs import Counting, Noting
from bench.peers import Job, Peer, peer
from bench.processes import Child


class Part(msgspec.Struct):
    """Who takes part, and in what. ``job`` is what a worker runs: ``count``, ``note`` or ``hold``."""

    contestant: str
    folder: str
    n: int = 0
    pause: float = 0.0
    job: str = "count"
    marks: tuple[int, ...] = ()
    file: str = "notes"

    @property
    def path(self) -> Path:
        """The folder that all who take part share."""
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
    """A process in this role."""
    return Child("bench.roles", role, msgspec.json.encode(part).decode())


def enqueue(role: str, part: Part, seconds: float = 600.0) -> Took:
    """Let a process fill or put, and wait until it has."""
    with start(role, part) as child:
        return msgspec.json.decode(child.answer(seconds), type=Took)


def fill(part: Part) -> None:
    """Enqueue ``n`` jobs in bulk."""
    _timed(part, lambda queue: queue.fill(part.n))


def put(part: Part) -> None:
    """Enqueue ``n`` jobs one by one, ``pause`` seconds apart."""

    def each(queue: Peer) -> None:
        for _ in range(part.n):
            queue.put(time.monotonic())
            if part.pause:
                time.sleep(part.pause)

    _timed(part, each)


def work(part: Part) -> None:
    """Be a worker until SIGTERM."""
    job: Job = Counting(part.path, part.marks) if part.job == "count" else Noting(part.notes, part.job == "hold")
    queue = _queue_of(part, job)
    if isinstance(job, Counting):
        job.left = queue.left
    queue.work()


def _timed(part: Part, enqueue: Callable[[Peer], None]) -> None:
    queue = _queue_of(part, _nothing)
    began = time.perf_counter()
    enqueue(queue)
    took = Took(part.n, time.perf_counter() - began)
    sys.stdout.write(msgspec.json.encode(took).decode() + "\n")


def _nothing(sent: float) -> None:
    """Nobody carries this out."""


def _queue_of(part: Part, job: Job) -> Peer:
    name, variant = part.contestant.split("/")
    return peer(name)(part.path, variant, job)


ROLES = {role.__name__: role for role in (fill, put, work)}

if __name__ == "__main__":
    ROLES[sys.argv[1]](msgspec.json.decode(sys.argv[2], type=Part))
