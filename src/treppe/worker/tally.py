"""What a worker has done."""

from __future__ import annotations

import msgspec

from treppe.job import Event, Settlement


class Tally(msgspec.Struct):
    """What a worker has done so far."""

    done: int = 0
    deferred: int = 0
    dead: int = 0
    unclear: int = 0
    handed_over: int = 0
    refused: int = 0  # settles that came too late: somebody else has the job

    def count(self, settlement: Settlement) -> None:
        """Add one settlement that was written."""
        name = _COUNTED[settlement.event]
        setattr(self, name, getattr(self, name) + 1)


_COUNTED = {
    Event.FINISH: "done",
    Event.DEFER: "deferred",
    Event.BURY: "dead",
    Event.DOUBT: "unclear",
    Event.HAND_OVER: "handed_over",
}
