"""Folding what settles learned into the flow.

When a queue is held:

* *throttled*: at the first 429. Later ones only lengthen the hold: they come from calls that were on their way.
* *down*: 3 connection failures in a row, or 5 failures of at least 3 different jobs, without a success between. In a
  brown-out with half the calls failing that happens about every 60 calls (14 if they are refused connections); the
  successes that are still on their way, or a probe, open it again from a tenth. So it slows the queue down, no more.
  An answer that is not a failure (404, 429 …) says that the target is up, so it ends the row too.
* *login*, *gone*, *refused*: 3, 5, 5 different jobs, without a success between.

A hold ends by a probe; a success of a call that was still on its way ends it too, except for throttling. Each probe
that meets the same trouble doubles the time to the next: 5 s to 5 min. A hold never needs a human to end.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from treppe.job import Kind, Report
from treppe.policy.pace.flow import CUT, LEAST, RAMP_FROM, REST, Flow, Why, openness

FIRST_WAIT: Final = 5.0
LONGEST_WAIT: Final = 300.0
LEAST_HOLD: Final = 1.0
LONGEST_ASKED: Final = 86400.0
DOUBLING: Final = 10  # successes
ROW: Final = 3  # connection failures
FAILURES: Final = 5
DIFFERENT: Final[Mapping[str, int]] = {Why.DOWN: 3, Why.LOGIN: 3, Why.GONE: 5, Why.REFUSED: 5}
"""So many different jobs must end so before the queue is held."""

BLAMED: Final[Mapping[Kind, Why]] = {
    Kind.DOWN: Why.DOWN,
    Kind.FAILED: Why.DOWN,
    Kind.LOGIN: Why.LOGIN,
    Kind.GONE: Why.GONE,
    Kind.REFUSED: Why.REFUSED,
}
ANSWERS: Final = frozenset({Kind.LOGIN, Kind.GONE, Kind.REFUSED, Kind.MOVED, Kind.AGAIN})
"""The target is up and said no."""


def fold(flow: Flow, reports: Iterable[Report], queue: str, now: float) -> Flow:
    """The flow after *reports*, in their order. The queue's name seeds the jitter.

    >>> held = fold(Flow(), [Report(Kind.THROTTLED, job=1, at=100.0, after=60.0)], "crm", now=101.0)
    >>> held.held, held.level, 160.0 <= held.until <= 166.0
    (<Why.THROTTLED: 'throttled'>, 0.75, True)
    """
    for report in reports:
        flow = _folded(flow, report, min(report.at, now), queue)
    return flow


def opened(flow: Flow, at: float) -> Flow:
    """The hold is over: on from a tenth, or after a throttling at the openness it left, with its rest from now on.

    >>> opened(Flow(held=Why.DOWN, tries=7), at=60.0).ramp
    0.1
    >>> opened(Flow(held=Why.THROTTLED, level=0.75, level_at=9000.0), at=60.0)
    Flow(..., level=0.75, level_at=240.0, ...)
    """
    rested = min(flow.level_at, at + REST)
    kept = _fresh(flow, held="", since=0.0, until=0.0, tries=0, probing=0.0, level_at=rested)
    return kept if flow.held == Why.THROTTLED else _replace(kept, ramp=RAMP_FROM, ramped=0)


def _folded(flow: Flow, report: Report, at: float, queue: str) -> Flow:
    if report.kind is Kind.OK:
        return _succeeded(flow, report, at)
    if report.kind is Kind.THROTTLED:
        return _throttled(flow, report, at, queue)
    if not flow.held:
        return _counted(flow, report, at, queue)
    return _probed(flow, report, at, queue) if report.probe else flow


def _succeeded(flow: Flow, report: Report, at: float) -> Flow:
    if flow.held == Why.THROTTLED and not report.probe:
        return flow
    if flow.held:
        return opened(flow, at)
    flow = _fresh(flow) if flow.blamed or flow.fails else flow
    if flow.ramp >= 1.0:
        return flow
    doublings, ramped = divmod(flow.ramped + report.n, DOUBLING)
    ramp = flow.ramp * 2.0 ** min(doublings, DOUBLING)
    met = ramp >= openness(_replace(flow, ramp=1.0), at)
    return _replace(flow, ramp=1.0 if met else ramp, ramped=0 if met else ramped)


def _throttled(flow: Flow, report: Report, at: float, queue: str) -> Flow:
    if flow.held != Why.THROTTLED:
        return _cut(flow, report, at, queue)
    tries = flow.tries + report.probe
    wait = _throttle_wait(report.after, tries, queue, at)
    until = max(flow.until, at + wait)
    probing = 0.0 if report.probe else flow.probing
    return _replace(flow, until=until, level_at=until + REST, tries=tries, probing=probing)


def _cut(flow: Flow, report: Report, at: float, queue: str) -> Flow:
    until = at + _throttle_wait(report.after, 0, queue, at)
    flow, before = _fresh(flow, held=Why.THROTTLED, since=at, until=until, tries=0, probing=0.0), flow
    if before.held:  # it was shut, so its pace is not to blame
        return _replace(flow, ramp=RAMP_FROM, ramped=0)
    ceiling = openness(before, at)
    level = max(LEAST, ceiling * CUT)
    return _replace(flow, level=level, level_at=until + REST, ceiling=ceiling, ramp=1.0, ramped=0)


def _throttle_wait(after: float | None, tries: int, queue: str, at: float) -> float:
    if after is None:
        return _wait(tries, queue, at)
    return min(max(LEAST_HOLD, after) * _jitter(queue, at), LONGEST_ASKED)


def _probed(flow: Flow, report: Report, at: float, queue: str) -> Flow:
    if report.kind is Kind.RELEASED:
        return _replace(flow, probing=0.0)
    if report.kind in ANSWERS and BLAMED.get(report.kind) != flow.held:
        return _counted(opened(flow, at), report, at, queue)
    tries = flow.tries + 1
    return _replace(flow, until=at + _wait(tries, queue, at), tries=tries, probing=0.0)


def _counted(flow: Flow, report: Report, at: float, queue: str) -> Flow:
    kind, why = report.kind, BLAMED.get(report.kind)
    if kind in ANSWERS and flow.fails:
        others = {key: jobs for key, jobs in flow.blamed.items() if key != Why.DOWN}
        flow = _replace(flow, row=0, fails=0, blamed=others)
    if why is None:
        return flow
    jobs = flow.blamed.get(why, ())
    if report.job not in jobs:
        flow = _replace(flow, blamed={**flow.blamed, why: (*jobs, report.job)})
    if why is Why.DOWN:
        flow = _replace(flow, row=flow.row + 1 if kind is Kind.DOWN else 0, fails=flow.fails + 1)
    return _hold(flow, why, at, queue) if _is_enough(flow, why) else flow


def _is_enough(flow: Flow, why: Why) -> bool:
    enough = len(flow.blamed[why]) >= DIFFERENT[why]
    return flow.row >= ROW or (enough and flow.fails >= FAILURES) if why is Why.DOWN else enough


def _hold(flow: Flow, why: Why, at: float, queue: str) -> Flow:
    return _fresh(flow, held=why, since=at, until=at + _wait(0, queue, at), tries=0, probing=0.0)


def _fresh(flow: Flow, **changes: Any) -> Flow:
    return _replace(flow, row=0, fails=0, blamed={}, **changes)


def _wait(tries: int, queue: str, at: float) -> float:
    return min(FIRST_WAIT * 2.0 ** min(tries, DOUBLING), LONGEST_WAIT) * _jitter(queue, at)


def _jitter(queue: str, at: float) -> float:
    """0 to 10 % more, the same for the same queue and time: the decision stays pure."""
    return 1 + zlib.crc32(f"{queue} {at}".encode()) / 2**32 / 10


_replace = msgspec.structs.replace
