"""Paced queues: one worker at a time asks for a queue's grant, with its flow, its reports and its slots in hand.

The gate is a lock of the transaction that nobody waits for. A human may change the flow meanwhile; then the claim is
done again.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from psycopg.errors import SerializationFailure

from treppe.job import Grant, Report
from treppe.store.postgres.database import SQL, Tx
from treppe.store.protocol import Pace

AHEAD = 1.0
MAX_REPORTS = 500


class Known(NamedTuple):
    """A queue's flow, what was reported since, and the slots in use."""

    queue: str
    now: float
    flow: bytes | None
    reports: list[Report]
    folded: list[int]
    slots: set[int]


def known(tx: Tx, queue: str) -> Known | None:
    """What is known of a queue; None while another worker is asking for its grant."""
    stream = f"report:{queue}"
    with tx.pipeline():
        gate = tx.send(SQL["pace_lock"], (queue,))  # what is read after it sees what its last holder wrote
        flow = tx.send(SQL["value_get"], (f"flow:{queue}",))
        reports = tx.send(SQL["journal_page"], (stream, 0, MAX_REPORTS))
        slots = tx.send(SQL["slots_used"], (queue,))
    ((is_open, now),) = gate()
    if not is_open:
        return None
    told, value = reports(), flow()
    return Known(
        queue,
        tx.clock_or(now),
        value[0][0] if value else None,
        [msgspec.structs.replace(msgspec.msgpack.decode(record, type=Report), at=at) for _, at, record in told],
        [seq for seq, _, _ in told],
        {n for (n,) in slots()},
    )


def ask(pace: Pace, known: Known, want: int, ahead: float) -> Grant:
    """A grant that fits into the slots that are free; what the pace says beyond that does not count."""
    grant = _grant(pace, known, want, ahead)
    fits = want if grant.slots is None else min(want, max(0, grant.slots - len(known.slots)))
    if grant.n > fits:
        grant = _grant(pace, known, fits, ahead)
    return grant if grant.n <= fits else msgspec.structs.replace(grant, n=fits)


def keep_flow(tx: Tx, known: Known, grant: Grant) -> None:
    """Write what the grant says is to be remembered, and drop what it has folded in."""
    name, new = f"flow:{known.queue}", grant.flow
    with tx.pipeline():
        if known.folded:
            tx.send(SQL["journal_drop"], (f"report:{known.queue}", known.folded))
        if new == b"":
            changed = known.flow is None or tx.run(SQL["value_delete"], (name, known.flow))
        elif new is None or new == known.flow:
            changed = True
        elif known.flow is None:
            changed = tx.run(SQL["value_create"], (name, new))
        else:
            changed = tx.run(SQL["value_swap"], (name, known.flow, new))
    if not changed:
        raise SerializationFailure(f"somebody changed {name} meanwhile")


def free_slots(used: set[int], n: int) -> list[int]:
    """The first *n* numbers that no job holds.

    >>> free_slots({1, 3}, 2)
    [2, 4]
    """
    return [number for number in range(1, len(used) + n + 1) if number not in used][:n]


def _grant(pace: Pace, known: Known, want: int, ahead: float) -> Grant:
    return pace.grant(known.queue, known.flow, known.reports, len(known.slots), known.now, want, ahead)
