"""Noticing what other processes commit, without asking all the time.

On Linux the kernel tells (inotify on the write-ahead log); asking once in a while stays as the net beneath.
Elsewhere only asking is left: often after something happened, less often when all is quiet.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

IN_MODIFY = 0x2
IN_NONBLOCK = os.O_NONBLOCK
IN_CLOEXEC = os.O_CLOEXEC

NET = 0.25  # seconds between two questions when the kernel tells us
SETTLING = 0.002  # … while a write is under way: it is told when it begins, and seen when it is committed
SETTLES_IN = 0.05
BUSY, QUIET = 0.01, 0.025  # … when nobody tells us, soon after something happened, and later
QUIET_AFTER = 2.0


class Watch:
    """Watches the log of the database at *path*, which must be open already. ``fd`` is None where nobody tells."""

    def __init__(self, path: Path) -> None:
        self.fd = _watch(Path(f"{path}-wal"))
        self._stirred = time.monotonic()

    def patience(self) -> float:
        """Seconds until it is worth asking again, if nothing is told before."""
        quiet_for = time.monotonic() - self._stirred
        if self.fd is None:
            return BUSY if quiet_for < QUIET_AFTER else QUIET
        return SETTLING if quiet_for < SETTLES_IN else NET

    def look(self) -> None:
        """Take in what was told."""
        if self.fd is not None and _drain(self.fd):
            self._stirred = time.monotonic()

    def stir(self) -> None:
        """Something has changed."""
        self._stirred = time.monotonic()

    def close(self) -> None:
        """End the watch."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


def _watch(file: Path) -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        fd = int(libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC))
        if fd < 0:  # too many watches on this machine, or none allowed
            return None
        if int(libc.inotify_add_watch(fd, os.fsencode(file), IN_MODIFY)) >= 0:
            return fd
        os.close(fd)
    return None


def _drain(fd: int) -> bool:
    """Read everything; True if anything was told."""
    told = False
    with suppress(BlockingIOError):
        while os.read(fd, 4096):
            told = True
    return told
