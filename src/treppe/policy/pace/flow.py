"""The flow of a queue: one small value that says at what pace it goes, and why it does not.

**Openness** is a number from 0 to 1, the smaller of two:

* the *level*: a throttling takes a quarter off, once per hold. Then it rests for three minutes and is regained by
  0.05 a minute; near the ceiling (the openness at which the last throttling hit) it creeps by 0.005 a minute.
  Without the rest a remote side a fifth stricter than configured throttles again after a minute and for ever;
  without the creeping it does so every seven minutes, each time at the cost of a quarter. Once past the ceiling,
  nothing remains of it, so a full pace always comes back. (Remembering where it last hurt is CUBIC's idea, RFC 9438.)
* the *ramp*: after an outage it begins with a tenth, and every ten successes double it until it meets the level.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final

import msgspec

from treppe.config import Rate

CUT: Final = 0.75
REST: Final = 180.0  # seconds after a throttling in which nothing is regained
REGAIN: Final = 0.05 / 60  # openness per second
CREEP: Final = 0.005 / 60  # near the ceiling
NEAR: Final = 0.95  # of the ceiling
LEAST: Final = 0.01
RAMP_FROM: Final = 0.1
DEFAULT_IN_FLIGHT: Final = 16
"""What a queue without limits of its own is scaled down from."""

TICK: Final = 2.0**-20
"""Seconds. Start times are multiples of it, which doubles hold exactly until 2106: a window cannot be missed by
rounding, as it would be if a thousand times 0.001 were added up at 1.7e9 (that makes 0.9999)."""


class Why(StrEnum):
    """Why a queue does not go: the code behind what people read."""

    THROTTLED = "throttled"
    DOWN = "down"
    LOGIN = "login"
    GONE = "gone"
    REFUSED = "refused"
    PAUSED = "paused"


class Limits(msgspec.Struct, frozen=True):
    """What a queue may do: at most ``rate``, ``burst`` of them at once, and ``concurrent`` in flight."""

    rate: Rate | None = None
    burst: int = 1
    concurrent: int | None = None

    @property
    def interval(self) -> float:
        """Seconds between two starts at full pace: W / (N - B + 1), so that no window of W ever holds more than N.

        >>> Limits(Rate(4, 1.0)).interval, Limits(Rate(4, 1.0), burst=3).interval, Limits().interval
        (0.25, 0.5, 0.0)
        """
        if self.rate is None:
            return 0.0
        return on_grid(self.rate.per / (self.rate.n - self.spare))

    @property
    def spare(self) -> int:
        """How many starts beyond the first may come at once."""
        return 0 if self.rate is None else min(self.burst, self.rate.n) - 1


class Pause(msgspec.Struct, frozen=True):
    """A human stopped the queue."""

    by: str
    at: float
    note: str = ""


class Flow(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value. Times are Unix seconds by the store's clock; new fields need a default, old ones are never reused."""

    at: float = 0.0  # when it was last written: shows a clock that stepped back
    tat: float = 0.0  # when the next start would be exactly on time (GCRA)
    level: float = 1.0
    level_at: float = 0.0  # from when on the level is regained
    ceiling: float = 1.0  # where the last throttling hit
    ramp: float = 1.0
    ramped: int = 0  # successes since the ramp last doubled
    held: str = ""  # a Why, but for the pause
    since: float = 0.0
    until: float = 0.0  # nothing before; then one probe
    tries: int = 0  # probes of this hold that did not open it
    probing: float = 0.0  # a probe is out until then
    row: int = 0  # connection failures in a row
    fails: int = 0  # failures since the last success
    blamed: dict[str, tuple[int, ...]] = {}  # by Why: the different jobs that ended so since the last success
    paused: Pause | None = None


def decode(value: bytes | None) -> Flow:
    """The flow of a stored value. Unknown fields are ignored; what cannot be read at all begins anew.

    >>> decode(None) == decode(b"") == Flow()
    True
    >>> decode(encode(Flow(level=0.75))).level
    0.75
    """
    try:
        return _DECODER.decode(value) if value else Flow()
    except msgspec.DecodeError:
        return Flow()


def encode(flow: Flow) -> bytes:
    """The value to store; empty when there is nothing to remember, and a store may drop it then.

    >>> encode(Flow(at=17.0))
    b''
    """
    resting = msgspec.structs.replace(flow, at=0.0) == Flow()
    return b"" if resting else msgspec.msgpack.encode(flow)


def openness(flow: Flow, now: float) -> float:
    """From 0 (shut) to 1 (full pace).

    >>> openness(Flow(), 0.0), openness(Flow(held=Why.DOWN), 0.0), openness(Flow(level=0.5, level_at=100.0), 160.0)
    (1.0, 0.0, 0.55)
    """
    shut = flow.held not in ("", Why.THROTTLED)
    return 0.0 if shut else min(_regained(flow, now), flow.ramp)


def slots(limits: Limits, open_by: float) -> int | None:
    """How many may be in flight, or None for any number. A rate is scaled instead where there is one.

    >>> slots(Limits(), 1.0), slots(Limits(), 0.5), slots(Limits(concurrent=4), 0.1)
    (None, 8, 1)
    """
    if limits.rate is not None or open_by >= 1.0:
        return limits.concurrent
    most = DEFAULT_IN_FLIGHT if limits.concurrent is None else limits.concurrent
    return max(1, int(most * open_by))


def current(flow: Flow, now: float) -> Flow:
    """The flow as it is now: moved along with a clock that stepped back, and without what is over.

    Nothing here may wait for a time that the clock has taken back, so all times move with it. Starts stay as far
    apart as they were, seen by a clock that only goes forward.
    """
    if now < flow.at:
        flow = _moved(flow, now - flow.at)
    if flow.level < 1.0 and _regained(flow, now) >= 1.0:
        flow = msgspec.structs.replace(flow, level=1.0, level_at=0.0, ceiling=1.0)
    return flow


def on_grid(seconds: float) -> float:
    """Rounded up to the next multiple of :data:`TICK`."""
    return math.ceil(seconds / TICK) * TICK


_DECODER: Final = msgspec.msgpack.Decoder(Flow)


def _regained(flow: Flow, now: float) -> float:
    level, seconds = flow.level, now - flow.level_at
    for slope, top in ((REGAIN, flow.ceiling * NEAR), (CREEP, flow.ceiling), (REGAIN, 1.0)):
        if level < top and seconds > 0:
            needed = (top - level) / slope
            level = min(top, level + slope * seconds)
            seconds -= needed
    return level


def _moved(flow: Flow, by: float) -> Flow:
    times = {name: getattr(flow, name) + by for name in ("at", "level_at", "since", "until", "probing")}
    return msgspec.structs.replace(flow, tat=on_grid(flow.tat + by), **times)
