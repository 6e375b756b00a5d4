"""How many jobs of a queue may start, and when: GCRA over the flow.

The theoretical arrival time (TAT) moves on by one interval per start, stretched by the openness; a start may lie
before it by the burst. With an interval of W / (N - B + 1) the start N places further is at least W away, so no
half-open window of W ever holds more than N starts, also over holds, probes and changes of openness, which only
stretch it. (GCRA: ITU-T I.371.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from treppe.job import Grant, Report
from treppe.policy.pace.flow import Flow, Limits, current, decode, encode, on_grid, openness, slots
from treppe.policy.pace.report import fold

PROBE_LEASE: Final = 60.0
"""Seconds after which a probe that nothing was heard of may be followed by another."""


class Pacer:
    """The pace of all queues; what stores ask before they claim.

    *queues* maps names, or patterns that end in ``*``, to limits; the exact name wins, then the longest pattern.

    >>> pacer = Pacer({"crm": Limits(concurrent=2), "shop:*": Limits(concurrent=1)})
    >>> pacer.limited("shop:acme"), pacer.limited("mail")
    (True, False)
    >>> pacer.grant("crm", None, [], running=1, now=0.0, want=5, ahead=1.0).n
    1
    """

    def __init__(self, queues: Mapping[str, Limits], probe_lease: float = PROBE_LEASE) -> None:
        patterns = [name for name in queues if name.endswith("*")]
        self._patterns = [(name[:-1], queues[name]) for name in sorted(patterns, key=len, reverse=True)]
        self._names = {name: limits for name, limits in queues.items() if name not in patterns}
        self._probe_lease = probe_lease

    def limits(self, queue: str) -> Limits:
        """What the settings say about this queue."""
        found = self._names.get(queue)
        return found or next((limits for prefix, limits in self._patterns if queue.startswith(prefix)), _NONE)

    def limited(self, queue: str) -> bool:
        """True when the queue has a rate or a concurrency of its own."""
        limits = self.limits(queue)
        return limits.rate is not None or limits.concurrent is not None

    def grant(
        self,
        queue: str,
        flow: bytes | None,
        reports: Sequence[Report],
        running: int,
        now: float,
        want: int,
        ahead: float,
    ) -> Grant:
        """Fold the reports in, then say how many of *want* jobs may start; see :class:`treppe.store.protocol.Pace`.

        Pure. ``flow`` of the answer is empty when there is nothing to remember, and the very bytes that were given
        when nothing changed. ``wait`` is None when waiting does not help: only a job, a settle or a human does.
        """
        limits = self.limits(queue)
        before = decode(flow)
        asked = _Asked(limits, running, now, want, ahead, fold(current(before, now), reports, queue, now))
        grant, after = _probe(asked, self._probe_lease) if asked.flow.held or asked.flow.paused else _go(asked)
        if after == before:
            return msgspec.structs.replace(grant, flow=flow)
        return msgspec.structs.replace(grant, flow=encode(msgspec.structs.replace(after, at=now)))


class _Asked(NamedTuple):
    """One question."""

    limits: Limits
    running: int
    now: float
    want: int
    ahead: float
    flow: Flow


class _Taken(NamedTuple):
    """So many start, then; ``tat`` is the next arrival time and ``next`` the earliest next start."""

    starts: tuple[float, ...]
    tat: float
    next: float


_NONE: Final = Limits()


def _go(asked: _Asked) -> tuple[Grant, Flow]:
    flow, open_by = asked.flow, openness(asked.flow, asked.now)
    most = slots(asked.limits, open_by)
    room = asked.want if most is None else max(0, most - asked.running)
    if asked.limits.rate is None or room == 0 < asked.want:
        return Grant(min(asked.want, room), slots=most), flow
    taken = _take(asked, min(asked.want, room), open_by)
    grant = Grant(len(taken.starts), starts=taken.starts, wait=_wait(asked, taken), slots=most)
    return grant, msgspec.structs.replace(flow, tat=taken.tat) if taken.starts else flow


def _probe(asked: _Asked, lease: float) -> tuple[Grant, Flow]:
    flow, now = asked.flow, asked.now
    most = slots(asked.limits, 1.0)
    if flow.paused:
        return Grant(0, slots=most), flow
    if now < max(flow.until, flow.probing):
        return Grant(0, wait=max(flow.until, flow.probing) - now, slots=most), flow
    if asked.want < 1 or (most is not None and asked.running >= most):
        return Grant(0, slots=most), flow
    taken = _take(asked, 1, 1.0)
    if not taken.starts:
        return Grant(0, wait=_wait(asked, taken), slots=most), flow
    flow = msgspec.structs.replace(flow, probing=now + lease, tat=taken.tat)
    return Grant(1, starts=taken.starts, wait=lease, probe=True, slots=most), flow


def _take(asked: _Asked, most: int, open_by: float) -> _Taken:
    """Up to *most* starts that lie in reach; none are stamped for a queue without a rate."""
    limits, tat = asked.limits, asked.flow.tat
    if limits.rate is None:
        return _Taken((0.0,) * most, tat, asked.now)
    first = on_grid(asked.now)
    step, slack = on_grid(limits.interval / open_by), limits.spare * limits.interval
    starts: list[float] = []
    start = max(first, tat - slack)
    while len(starts) < most and start <= first + asked.ahead:
        starts.append(start)
        tat = max(tat, start) + step
        start = max(first, tat - slack)
    return _Taken(tuple(starts), tat, start)


def _wait(asked: _Asked, taken: _Taken) -> float | None:
    """Until the next start, half of what lies in reach earlier, so that starts come in batches; None if one is left."""
    if taken.next <= on_grid(asked.now) + asked.ahead:
        return None
    return taken.next - asked.now - asked.ahead / 2
