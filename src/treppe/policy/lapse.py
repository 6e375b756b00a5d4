"""What becomes of a job whose worker's lease ran out.

A lapse makes a job a suspect; a suspect runs with nothing beside it, so its next lapse is surely its own and counts
as a crash. (A batch of a hundred must not die with the one that segfaults: dramatiq, solid_queue and Sidekiq had to
learn it.) What must not be repeated is never simply claimed again.
"""

from __future__ import annotations

from typing import NamedTuple

from treppe.job import Event, Repeat


class Decision(NamedTuple):
    """The event for the state machine, whether it counts as a crash, and what to tell."""

    event: Event
    crashed: bool
    error: str


def after_lapse(
    repeat: Repeat, suspect: bool, cancelling: bool, crashes: int, max_crashes: int, looking: bool = False
) -> Decision:
    """Decide for one job. *crashes* are those before this lapse; *looking* = it was unclear, the worker only looked.

    >>> after_lapse(Repeat.SAFE, suspect=False, cancelling=False, crashes=0, max_crashes=3).event
    <Event.LAPSE: 'lapse'>
    >>> after_lapse(Repeat.SAFE, suspect=True, cancelling=False, crashes=2, max_crashes=3).error
    'it kills its worker: 3 of 3 crashes'
    >>> after_lapse(Repeat.ASK, suspect=False, cancelling=False, crashes=0, max_crashes=3).event
    <Event.DOUBT: 'doubt'>
    """
    if looking or repeat is not Repeat.SAFE:
        return Decision(Event.DOUBT, suspect, "its worker vanished; nobody knows whether the other side acted")
    if cancelling:
        return Decision(Event.CANCEL, suspect, "its worker vanished, and it was to be cancelled")
    if suspect and crashes + 1 >= max_crashes:
        return Decision(Event.BURY, True, f"it kills its worker: {crashes + 1} of {max_crashes} crashes")
    return Decision(Event.LAPSE, suspect, "its worker vanished")
