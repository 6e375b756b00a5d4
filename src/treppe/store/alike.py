"""What every store decides alike, whatever it keeps its jobs in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from treppe.errors import IllegalTransition
from treppe.job import Event, Kind, Report, Settlement, State, advance

ACTS = frozenset({Event.CANCEL, Event.ASK_CANCEL, Event.REVIVE, Event.CONFIRM, Event.BURY})
"""What a human may do to a job."""


def may_act(state: State, event: Event) -> bool:
    """A human may confirm what nobody runs; a running job's end is its worker's matter.

    >>> may_act(State.UNCLEAR, Event.CONFIRM), may_act(State.RUNNING, Event.CONFIRM), may_act(State.DONE, Event.REVIVE)
    (True, False, False)
    """
    if event not in ACTS or (state is State.RUNNING and event is not Event.ASK_CANCEL):
        return False
    try:
        advance(state, event)
    except IllegalTransition:
        return False
    return True


def reports_by_queue(settlements: Iterable[Settlement], at: float = 0.0) -> dict[str, list[Report]]:
    """The reports of each queue in their order, said at *at*; successes in a row become one."""
    queues: dict[str, list[_Row]] = defaultdict(list)
    for settlement in settlements:
        if (report := settlement.report) is not None:
            rows = queues[settlement.claim.queue]
            if rows and rows[-1].absorbs(report):
                rows[-1].n += report.n
            else:
                rows.append(_Row(report))
    return {queue: [row.report(at) for row in queues[queue]] for queue in sorted(queues)}


class _Row:
    """A report, and how many like it followed."""

    __slots__ = ("first", "n", "success")

    def __init__(self, first: Report) -> None:
        self.first, self.n = first, first.n
        self.success = first.kind is Kind.OK and not first.probe

    def absorbs(self, report: Report) -> bool:
        return self.success and report.kind is Kind.OK and not report.probe

    def report(self, at: float) -> Report:
        return msgspec.structs.replace(self.first, at=at, n=self.n)
