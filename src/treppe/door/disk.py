"""Is there room left? The door refuses with 503 before the store fails in the middle of something."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LEAST_SHARE: Final = 0.05
"""Free disk below this share is too little …"""

ENOUGH_BYTES: Final = 1 << 30
"""… unless it is still so many bytes: 5 % of a large disk is room for days."""


class DiskWatch:
    """Looks at the disk of *folder* at most once a second."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
        usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage,
    ) -> None:
        self._folder, self._clock, self._usage = folder, clock, usage
        self._looked_at = float("-inf")
        self._full = False

    def full(self) -> bool:
        """True when less than 5 % and less than 1 GiB is free. Where that cannot be told, False.

        >>> DiskWatch(Path("/"), usage=lambda folder: (100 << 30, 99 << 30, 1 << 29)).full()
        True
        """
        now = self._clock()
        if now - self._looked_at >= 1.0:
            self._looked_at = now
            self._full = self._look()
        return self._full

    def _look(self) -> bool:
        try:
            total, _, free = self._usage(self._folder)
        except OSError:
            return False
        return free < min(total * LEAST_SHARE, ENOUGH_BYTES)
