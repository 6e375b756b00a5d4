"""When to look for suspects: jobs whose worker vanished run one at a time, with nothing beside them."""

from __future__ import annotations

import time

from treppe.store.protocol import Claimed

DRAIN_AFTER = 20.0
"""Seconds that suspects wait for a worker to become idle by itself; then it claims nothing else until it is."""

MOST_IN_VAIN = 9
"""Tries for suspects that cannot be had (their queue is held) are doubled up to eight minutes apart."""


class Suspects:
    """What one engine knows of suspects that wait."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._not_until = 0.0
        self._in_vain = 0

    @property
    def wait(self) -> bool:
        """True when it is worth asking for one."""
        return self._since is not None

    @property
    def must_drain(self) -> bool:
        """True when nothing else may be claimed until a suspect has had its turn."""
        return self._since is not None and time.monotonic() - self._since > DRAIN_AFTER

    def notice(self, claimed: Claimed) -> None:
        """Take in what a usual claim said about them."""
        now = time.monotonic()
        if not claimed.suspects or now < self._not_until:
            self._since = None
        elif self._since is None:
            self._since = now

    def asked(self, claimed: Claimed) -> None:
        """Take in what came of asking for one."""
        now = time.monotonic()
        self._since = now if claimed.claims and claimed.suspects else None
        if claimed.claims:
            self._in_vain = 0
        else:
            self._in_vain = min(self._in_vain + 1, MOST_IN_VAIN)
            self._not_until = now + 2.0**self._in_vain
