"""What people see of a flow, and what they may do to it."""

from __future__ import annotations

import msgspec

from treppe.policy.pace.flow import Flow, Limits, Pause, Why, current, openness, slots
from treppe.policy.pace.report import opened


class Described(msgspec.Struct, frozen=True):
    """A flow for the board, the alerts and the command line."""

    held: bool
    why: Why | None
    since: float | None
    resumes_at: float | None  # when the next try is due; None = a human's turn, or not held
    openness: float
    per_second: float | None  # the pace right now; None = no rate
    in_flight: int | None  # at most so many at once; None = any number
    probing: bool = False  # a probe is out
    by: str = ""  # who paused it
    note: str = ""


def describe(flow: Flow, limits: Limits, now: float) -> Described:
    """The flow in figures.

    >>> from treppe.config import Rate
    >>> describe(Flow(level=0.75, level_at=100.0), Limits(Rate(20, 1.0)), now=50.0).per_second
    15.0
    >>> describe(pause(Flow(), by="mara", at=7.0), Limits(), now=9.0).why
    <Why.PAUSED: 'paused'>
    """
    flow = current(flow, now)
    open_by = openness(flow, now)
    shown = Described(
        held=bool(flow.held),
        why=_why(flow),
        since=flow.since if flow.held else None,
        resumes_at=max(flow.until, flow.probing if flow.probing > now else 0.0) if flow.held else None,
        openness=open_by,
        per_second=open_by * (limits.rate.n - limits.spare) / limits.rate.per if limits.rate else None,
        in_flight=slots(limits, open_by),
        probing=bool(flow.held) and now < flow.probing,
    )
    if flow.paused is None:
        return shown
    by, at, note = flow.paused.by, flow.paused.at, flow.paused.note
    return msgspec.structs.replace(
        shown, held=True, why=Why.PAUSED, since=at, resumes_at=None, by=by, note=note, probing=False
    )


def pause(flow: Flow, by: str, at: float, note: str = "") -> Flow:
    """Nothing starts any more, not even a probe, until somebody resumes it. A second pause keeps the first.

    >>> pause(pause(Flow(), "mara", 7.0), "otto", 9.0).paused
    Pause(by='mara', at=7.0, note='')
    """
    return flow if flow.paused else msgspec.structs.replace(flow, paused=Pause(by, at, note))


def resume(flow: Flow, at: float) -> Flow:
    """End the pause; where there is none, end the hold: whoever says "resume" knows that it works again.

    >>> resume(pause(Flow(held=Why.LOGIN), "mara", 7.0), at=9.0).held, resume(Flow(held=Why.LOGIN), at=9.0).held
    (<Why.LOGIN: 'login'>, '')
    """
    if flow.paused:
        return msgspec.structs.replace(flow, paused=None)
    return opened(flow, at) if flow.held else flow


def _why(flow: Flow) -> Why | None:
    return Why(flow.held) if flow.held in tuple(Why) else Why.DOWN if flow.held else None
