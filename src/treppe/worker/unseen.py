"""What a failed claim may have taken all the same: looked for until it can no longer be carried out."""

from __future__ import annotations

import time
from collections.abc import Collection

from treppe.job import Settlement
from treppe.settle import Rules, conclude
from treppe.store.protocol import Store
from treppe.worker.handler import released
from treppe.worker.lease import Lease
from treppe.worker.turn import LONGEST_WAIT


class Unseen:
    """Asks the store what its worker holds; nothing as long as no claim has failed."""

    def __init__(self, store: Store, lease: Lease) -> None:
        self._store, self._lease = store, lease
        self._next_look = float("inf")
        self._unsure_until = 0.0

    def expect(self) -> None:
        """A claim has failed. It may have been carried out, even later."""
        self._next_look = 0.0
        self._unsure_until = time.monotonic() + self._lease.seconds

    @property
    def looks(self) -> bool:
        """True when it is time to ask."""
        return time.monotonic() >= self._next_look

    def given_back(self, known: Collection[tuple[int, int]]) -> list[Settlement]:
        """The ends of claims that are none of *known* (seq and token)."""
        now = time.monotonic()
        held = self._store.held(self._lease.worker)
        self._next_look = now + LONGEST_WAIT if now < self._unsure_until else float("inf")
        unseen = [claim for claim in held if (claim.seq, claim.token) not in known]
        outcome = released("its claim was not answered", begun=False)
        return [conclude(claim, outcome, Rules(), claim.claimed_at, 0.0) for claim in unseen]
