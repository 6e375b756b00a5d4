"""Validate, check what the store can keep, put; for threads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from treppe.config import Destination
from treppe.errors import Conflict, InvalidJob, StoreBusy, Unsupported
from treppe.intake.rules import EVENT_RULES, JOB_RULES, SETTING_RULES, alike, obey, shown
from treppe.job import NewEvent, NewJob, Repeat
from treppe.store.protocol import Plan, Put, Store

MAX_PUT: Final = 10_000
"""No put holds more jobs and events than this. A put is all or nothing, so it is never cut into pieces."""

PATIENCE: Final = 10.0
"""Seconds."""

MAX_PAYLOAD: Final = 256 * 1024
"""A job's own payload has at most so many bytes, if nothing else is said. Large things belong in a file or a bucket."""


class Intake:
    """Puts jobs and events into a store, after a look at each of them."""

    def __init__(self, store: Store, max_payload: int = MAX_PAYLOAD) -> None:
        self.store = store
        self.max_payload = max_payload

    def put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put:
        """Store all of it or nothing; return once it is on disk.

        Raises InvalidJob before anything is stored. A taken id raises nothing: see :func:`raise_conflicts`.
        StoreBusy when somebody's open transaction holds one of the ids for longer than 10 seconds.
        """
        self.check(jobs, events)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self.store.put(jobs, events)
            except StoreBusy:
                if time.monotonic() > until:
                    raise

    def plan(self, jobs: Sequence[NewJob]) -> Plan:
        """The same as statements for the caller's own transaction; Unsupported where the store has none."""
        if not self.store.can.within:
            raise Unsupported("this store cannot enqueue inside your transaction. Leave out within=")
        self.check(jobs)
        return self.store.plan(jobs)

    def check(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> None:
        """InvalidJob for the first thing that cannot be stored: it names the job, the field and the cure."""
        entries = len(jobs) + len(events)
        if entries > MAX_PUT:
            raise InvalidJob(f"{entries} entries are too many for one put. Put at most {MAX_PUT} at once")
        for event in events:
            obey(EVENT_RULES, event, "event")
        checked: NewJob | None = None
        for job in jobs:
            if checked is None or not alike(job, checked):
                obey(SETTING_RULES, job, "job")
                checked = job
            obey(JOB_RULES, job, "job")
            if len(job.payload) > self.max_payload:
                raise InvalidJob(
                    f"job {shown(job.id)}: its payload has {len(job.payload)} bytes, {self.max_payload} are allowed. "
                    "Put the data where the handler can fetch it, and enqueue its address"
                )


def raise_conflicts(put: Put) -> Put:
    """Raise Conflict for the first job whose id is taken by another one; else hand the answer on.

    >>> from treppe.job import Placed
    >>> raise_conflicts(Put((Placed("invoice:42", 7, duplicate=True, conflict="queue"),)))
    Traceback (most recent call last):
    treppe.errors.Conflict: the id "invoice:42" is taken by a job with another queue. ...
    """
    for placed in put.jobs:
        if placed.conflict:
            raise Conflict(placed.id, placed.conflict)
    return put


def delivery_settings(destination: Destination) -> dict[str, Any]:
    """What all jobs of a destination have in common, as fields of a NewJob. Without an idempotency header: ask.

    >>> delivery_settings(Destination("crm", "https://crm.example/in"))["repeat"]
    <Repeat.ASK: 'ask'>
    """
    repeat = destination.repeat or ("safe" if destination.idempotency else "ask")
    same = ("attempts", "crashes", "expires", "deadline", "skip_dead")
    own = {"task": destination.task, "queue": destination.pace_queue, "repeat": Repeat(repeat)}
    return own | {name: getattr(destination, name) for name in same}
