"""Pace is a value: pure functions over the flow of a queue decide who may start, and when.

>>> from treppe.config import Rate
>>> pacer = Pacer({"crm": Limits(Rate(2, 1.0))})
>>> grant = pacer.grant("crm", None, [], running=0, now=100.0, want=10, ahead=1.0)
>>> grant.starts
(100.0, 100.5, 101.0)
>>> pacer.grant("crm", grant.flow, [], running=0, now=100.0, want=10, ahead=1.0).wait
1.0
"""

from __future__ import annotations

from treppe.policy.pace.flow import Flow, Limits, Pause, Why, decode, encode, openness
from treppe.policy.pace.grant import Pacer
from treppe.policy.pace.people import Described, describe, pause, resume

__all__ = [
    "Described",
    "Flow",
    "Limits",
    "Pacer",
    "Pause",
    "Why",
    "decode",
    "describe",
    "encode",
    "openness",
    "pause",
    "resume",
]
