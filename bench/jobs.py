"""What a measured worker runs: jobs that do nothing but tell when they ran."""

from __future__ import annotations

import itertools
import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

POLL = 0.002
HOLDS_FOR = 600.0


class Counted(msgspec.Struct):
    """When the first job ran, when the last one of so many did, and when all of them were at their end.

    Monotonic times in seconds, the same for every process; ``cpu`` is processor time from the first to the end.
    """

    jobs: int
    first: float
    last: float
    settled: float
    cpu: float

    @property
    def per_second(self) -> float:
        """Jobs carried out and at their end, a second."""
        return (self.jobs - 1) / (self.settled - self.first)


class Counting:
    """A no-op that counts, and writes a :class:`Counted` for each of the *marks* into a file of its own."""

    left: Callable[[], int | None]
    """How many jobs are not at their end; set before the first one runs."""

    def __init__(self, folder: Path, marks: Sequence[int]) -> None:
        self._folder, self._marks = folder, frozenset(marks)
        self._count = itertools.count(1)  # next() is one step of the interpreter: right in any number of threads
        self._first = self._cpu = 0.0

    def __call__(self, sent: float) -> None:
        """Be one job."""
        run = next(self._count)
        if run == 1:
            self._first, self._cpu = time.monotonic(), time.process_time()
        if run in self._marks:
            threading.Thread(target=self._tell, args=(run, time.monotonic()), daemon=True).start()

    def _tell(self, run: int, last: float) -> None:
        while self.left():
            time.sleep(POLL)
        told = Counted(run, self._first, last, time.monotonic(), time.process_time() - self._cpu)
        path = counted_file(self._folder, run)
        path.with_suffix(".part").write_bytes(msgspec.json.encode(told))
        path.with_suffix(".part").rename(path)


def counted_file(folder: Path, mark: int) -> Path:
    """Where that :class:`Counted` lies once it is there."""
    return folder / f"counted-{mark}.json"


class Noting:
    """A no-op that writes down how long after its enqueuing it started. *holds* are those that never come to an end."""

    def __init__(self, file: Path, hold: bool = False) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._hold = hold

    def __call__(self, sent: float) -> None:
        """Be one job."""
        now = time.monotonic()
        os.write(self._file, _NOTE.pack(sent, now))
        if self._hold and sent > 0:
            time.sleep(HOLDS_FOR)


_NOTE = struct.Struct("dd")


def notes(file: Path) -> list[tuple[float, float]]:
    """What was enqueued, and when it started (monotonic), in the order of the starts."""
    return list(_NOTE.iter_unpack(file.read_bytes())) if file.exists() else []
