"""Fresh processes and fresh folders for whatever is measured, and what the system says about them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
POLL = 0.005
PROC = Path("/proc")


class Stuck(Exception):
    """Something did not happen in time; the text says what."""


def house() -> Path:
    """Where the bench keeps what it makes: on the disk that the repository lies on, as "/tmp" may be no disk at all."""
    folder = ROOT / ".bench"
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    return folder


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(dir=house()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(what: str, look: Callable[[], T | None], seconds: float) -> T:
    """What *look* returns once it is there; :class:`Stuck` after that many seconds."""
    give_up = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > give_up:
            raise Stuck(f"{what} did not come within {seconds:g} s")
        time.sleep(POLL)
    return found


def say(sentence: str) -> None:
    """Tell how far it is, on standard error."""
    print(f"bench: {sentence}", file=sys.stderr, flush=True)


class Child:
    """A command run as a process of its own, in the folder of the repository; stopped at the end of the block.

    Asked to stop *gently*, it has time to come to its own end.
    """

    def __init__(
        self, *command: str, name: str = "", env: Mapping[str, str] | None = None, gently: bool = True
    ) -> None:
        self._name = name or " ".join(command)
        self._gently = gently
        environment = {**os.environ, **(env or {})}
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        """Nothing more: it runs already."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ask it to stop, and see to it that it does."""
        try:
            if self._gently:
                self._process.terminate()
                self._process.wait(30)
            else:
                self.kill()
        except subprocess.TimeoutExpired:
            self.kill()
        if self._process.stdout:
            self._process.stdout.close()

    def line(self) -> bytes:
        """The next line it prints; empty when it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def answer(self, seconds: float) -> bytes:
        """All that it prints until it ends by itself; :class:`Stuck` when it fails or takes too long."""
        try:
            printed, _ = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise Stuck(f"{self._name} did not end within {seconds:g} s") from error
        if self._process.returncode:
            raise Stuck(f"{self._name} failed with {self._process.returncode}; what it said is above")
        return printed

    def must_run(self) -> None:
        """:class:`Stuck` when it has ended although nobody asked it to."""
        if self._process.poll() is not None:
            raise Stuck(f"{self._name} ended with {self._process.returncode}; what it said is above")

    def kill(self) -> None:
        """kill -9 for it and for all that it has started, and see it gone."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def rss(self) -> int:
        """Bytes of memory in use."""
        lines = (PROC / str(self.pid) / "status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))

    def cpu(self) -> float:
        """Seconds of processor time used so far (proc_pid_stat(5): utime and stime)."""
        after_name = (PROC / str(self.pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def module(name: str, *arguments: str, called: str = "") -> Child:
    """A module run by this Python; *called* is its name in complaints."""
    return Child(sys.executable, "-m", name, *arguments, name=called)


def needs_proc() -> None:
    """Say so where the system does not tell about processes."""
    if not (PROC / "self" / "status").exists():
        raise Stuck(f"this is read from /proc, which {os.uname().sysname} does not have")
