"""What wakes a waiting worker: an event with a file descriptor, so that one poll can wait for it and for a store."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress


class Bell:
    """Rings until it is cleared. May be rung from any thread, as often as one likes.

    >>> bell = Bell()
    >>> bell.wait(0.0)
    False
    >>> bell.ring()
    >>> bell.wait(10.0)
    True
    >>> bell.clear(); bell.close()
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._rung = self._closed = False
        self._lock = threading.Lock()

    def ring(self) -> None:
        """Wake whoever waits, now or next. Nothing happens when it is closed."""
        if self._rung:
            return
        with self._lock:  # the descriptor must not be closed, and be another file, between the look and the write
            if not self._closed:
                self._rung = True
                with suppress(BlockingIOError):
                    os.write(self._write, b"!")

    def clear(self) -> None:
        """Stop ringing. What was rung for must be looked at after this, not before."""
        with suppress(BlockingIOError):
            os.read(self._read, 64)
        self._rung = False

    def wait(self, timeout: float, also: int | None = None) -> bool:
        """Wait until it rings, or until the file descriptor *also* can be read; False when neither came in time."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        if also is not None:
            poll.register(also, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout) * 1000))

    @property
    def rings(self) -> bool:
        """True while it rings."""
        return self._rung

    def close(self) -> None:
        """Give the file descriptors back."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._read)
                os.close(self._write)

    def __del__(self) -> None:
        self.close()
