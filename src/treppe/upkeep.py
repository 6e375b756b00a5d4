"""Upkeep: what any worker, door or drain does on the side so that nothing is left behind.

There is no leader: the store looks at each row again in the statement that writes, so that rounds may overlap.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from treppe.settle import AFTER_LAPSE
from treppe.store.protocol import Store, Upkept

ROUNDS_PER_LEASE = 3
"""Whoever takes a lease after a round looked when the next one ends is not waited for much longer."""


class Upkeep:
    """Rounds of :meth:`Store.upkeep`. Nothing lapses for one lease after a start or a store error.

    While the store was away, nobody could renew; a living worker gets the time to do so first.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self.trouble()

    def trouble(self) -> None:
        """The store did not answer: give everybody one lease to renew."""
        self._lapse_from = self._clock() + self._store.lease

    @property
    def patience(self) -> float:
        """Seconds until it may lapse anything."""
        return max(0.0, self._lapse_from - self._clock())

    def round(self) -> Upkept:
        """One bounded round; ``more`` says that the next one should come soon."""
        return self._store.upkeep(None if self.patience else AFTER_LAPSE)

    def turn(self) -> float:
        """One round; seconds until the next one. After a lapse it comes at once, and so may who wants the jobs."""
        patience = self.patience
        done = self.round()
        if done.more or done.lapsed:
            return 0.0
        return min(done.look_in, self._store.lease / ROUNDS_PER_LEASE, patience or done.look_in)
