"""What a measured worker runs: jobs that do nothing but tell when they ran, and how those who measure read it."""

from __future__ import annotations

import os
import struct
import threading
import time
from pathlib import Path

import msgspec

TICK = 0.005
QUIET = 50
HOLDS_FOR = 600.0


class Counted(msgspec.Struct):
    """What one worker process has carried out: how many jobs, when the first one ran (monotonic), and the processor
    time since then, in seconds."""

    jobs: int
    first: float
    cpu: float


class Counting:
    """A no-op that counts; a thread writes a :class:`Counted` into a file of this process as long as it changes."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / f"counted-{os.getpid()}", os.O_WRONLY | os.O_CREAT, 0o600)
        self._counts: dict[int, int] = {}  # each thread writes its own only
        self._first = self._cpu = 0.0
        self._asleep, self._wake = True, threading.Event()
        threading.Thread(target=self._tell, daemon=True).start()

    def __call__(self, sent: float) -> float:
        """Be one job."""
        if not self._first:
            self._first, self._cpu = time.monotonic(), time.process_time()
        thread = threading.get_ident()
        self._counts[thread] = self._counts.get(thread, 0) + 1
        if self._asleep:
            self._wake.set()
        return 0.0

    def _tell(self) -> None:
        """An idle worker is not woken by this."""
        told = quiet = 0
        while True:
            jobs = sum(list(self._counts.values()))
            quiet = quiet + 1 if jobs == told else 0
            if jobs != told:
                told = jobs
                os.pwrite(self._file, _COUNT.pack(jobs, self._first, time.process_time() - self._cpu), 0)
            self._asleep = quiet > QUIET
            if not self._asleep:
                time.sleep(TICK)
            elif jobs == sum(list(self._counts.values())):
                self._wake.wait()
                self._wake.clear()


def counted(folder: Path) -> list[Counted]:
    """What each worker of this folder that has begun has carried out."""
    told = (file.read_bytes() for file in folder.glob("counted-*"))
    return [Counted(int(jobs), first, cpu) for jobs, first, cpu in (_COUNT.unpack(one) for one in told if one)]


class Noting:
    """A no-op that writes down how long after its enqueuing it started. *hold* are those that never come to an end."""

    def __init__(self, file: Path, hold: bool = False) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._hold = hold

    def __call__(self, sent: float) -> float:
        """Be one job."""
        os.write(self._file, _NOTE.pack(sent, time.monotonic()))
        return HOLDS_FOR if self._hold and sent > 0 else 0.0


_COUNT, _NOTE = struct.Struct("<ddd"), struct.Struct("<dd")


def notes(file: Path) -> list[tuple[float, float]]:
    """What was enqueued, and when it started (monotonic), in the order of the starts."""
    return list(_NOTE.iter_unpack(file.read_bytes())) if file.exists() else []
