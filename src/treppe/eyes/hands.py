"""What people do to a queue: pause and resume, written down in the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from treppe.eyes.measure import FLOW
from treppe.policy import pace
from treppe.store.protocol import Store

AUDIT: Final = "audit"
_TRIES: Final = 10


def pause(store: Store, queue: str, by: str, note: str = "") -> bool:
    """Let nothing of *queue* start until somebody resumes it; it goes on accepting. False: it was paused already."""
    return _change(store, queue, "pause", by, note, lambda flow: pace.pause(flow, by, store.now(), note))


def resume(store: Store, queue: str, by: str, note: str = "") -> bool:
    """End the pause of *queue*, or else its hold. False: it was open already."""
    return _change(store, queue, "resume", by, note, lambda flow: pace.resume(flow, store.now()))


def _change(store: Store, queue: str, act: str, by: str, note: str, change: Callable[[pace.Flow], pace.Flow]) -> bool:
    for _ in range(_TRIES):
        old = store.journal.get(FLOW + queue)
        flow = pace.decode(old)
        new = change(flow)
        if new == flow:
            return False
        if store.journal.swap(FLOW + queue, old, pace.encode(new) or None):
            record = {"by": by, "act": act, "queue": queue, "ids": [], "note": note, "at": store.now()}
            store.journal.append(AUDIT, [msgspec.json.encode(record)])
            return True
    return False
