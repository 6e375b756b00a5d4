"""Which leases may have ended, and whether upkeep was patient enough."""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.history import Kept, Leased, Swept

Blame = Callable[[str, str], None]


class Leases:
    """A lease ends by the store's clock, when a round of upkeep that may lapse looks at it after its time."""

    def __init__(self, lease: float, blame: Blame) -> None:
        self._lease, self._blame = lease, blame
        self._until: dict[int, float] = {}
        self._maybe_gone: set[int] = set()
        self._sweeping = 0
        self._patient_since: dict[str, float] = {}
        self._sweeps: list[bool] = []

    def it_is(self, at: float) -> None:
        """The store's clock was seen at this time."""
        if self._sweeping:
            self._maybe_gone |= {worker for worker, until in self._until.items() if until <= at}

    def leased(self, entry: Leased) -> None:
        worker = entry.worker
        if not entry.counts:
            if worker not in self._maybe_gone:
                self._blame("I9", f"the lease of worker {worker} was not renewed, and it had not ended")
            return
        if entry.until:
            self._until[worker] = entry.until
            self._maybe_gone.discard(worker)
        else:
            self._until.pop(worker, None)
            self._maybe_gone.add(worker)

    def upkeep_begins(self, entry: Kept) -> None:
        if not entry.lapses:
            return
        self._sweeping += 1
        patience = entry.on - self._patient_since.get(entry.process, float("-inf"))
        if patience < self._lease - 1e-6:
            self._blame("I9", f"{entry.process} lapses {patience:.3f} s after its start or an error of the store")

    def upkeep_ends(self, entry: Swept) -> None:
        self._sweeping -= entry.lapses

    def patient_since(self, process: str, on: float) -> None:
        """It has just started, or the store did not answer it."""
        self._patient_since[process] = on

    def may_be_gone(self, worker: int) -> bool:
        return worker in self._maybe_gone or worker not in self._until
