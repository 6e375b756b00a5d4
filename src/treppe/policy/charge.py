"""What uses up an attempt: the whole table as data, and the decision where the table says "it depends".

An attempt is charged only when the failure is the job's own fault. A 5xx or a time-out says nothing about whose
fault it was; what *others* met at the same destination or task since does. The evidence is two counters per task
(tries that succeeded, tries at all) and what they were when this job last failed; the job's own tries are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from treppe.job import Kind

PROVING: Final = 3
"""So many successes of others prove a target healthy, if they are four of five of those tried."""

QUIET: Final = 3600.0
"""Seconds after which fewer will do, or none at all: a lone job on a quiet target is charged once an hour. (Simulated:
with one other order an hour a broken one is found out in 9 hours; if only *none* counted, it would not be in 14 days.)
"""

MAX_UNCHARGED: Final = 500
"""Tries without a charge, probes not counted, before a job is given up."""

Seen = tuple[int, int, float]
"""The task's counters (succeeded, tried) at a job's last failure, and since when it has been alone or uncharged."""


class Charging(StrEnum):
    """Whether a kind of ending uses up an attempt."""

    NEVER = "never"
    BY_HEALTH = "if others prove the target healthy, or once an hour if there are none"
    ALWAYS = "always"


class Effect(StrEnum):
    """What a kind of ending does to its queue; ``policy.pace`` does it."""

    NONE = "nothing"
    OPENS = "openness up"
    THROTTLES = "held until then; openness a quarter down, once per hold"
    SHUTS = "3 connection failures in a row, or 5 failures of 3 different jobs: openness 0, probes"
    LOCKS_OUT = "3 different jobs: held, login broken"
    LOSES = "5 different jobs: held, address not found"
    REFUSES = "5 different jobs in a row: held, the target refuses everything"
    ANSWERS = "the target answers, so it is up"
    TOLD = "the target answers; a human is told"


class Row(msgspec.Struct, frozen=True):
    """What one kind means. ``acted``: did the other side act (None = maybe)? ``counts``: it is evidence for others."""

    acted: bool | None
    charging: Charging
    effect: Effect
    counts: bool = False


TABLE: Final[Mapping[Kind, Row]] = {
    Kind.OK: Row(True, Charging.NEVER, Effect.OPENS, counts=True),
    Kind.RELEASED: Row(None, Charging.NEVER, Effect.NONE),
    Kind.SNOOZED: Row(False, Charging.NEVER, Effect.NONE),
    Kind.AGAIN: Row(False, Charging.NEVER, Effect.ANSWERS),
    Kind.THROTTLED: Row(False, Charging.NEVER, Effect.THROTTLES),
    Kind.DOWN: Row(False, Charging.NEVER, Effect.SHUTS, counts=True),
    Kind.FAILED: Row(None, Charging.BY_HEALTH, Effect.SHUTS, counts=True),
    Kind.CHARGED: Row(False, Charging.ALWAYS, Effect.NONE),
    Kind.LOGIN: Row(False, Charging.NEVER, Effect.LOCKS_OUT),
    Kind.GONE: Row(False, Charging.ALWAYS, Effect.LOSES),
    Kind.MOVED: Row(False, Charging.ALWAYS, Effect.TOLD),
    Kind.REFUSED: Row(False, Charging.NEVER, Effect.REFUSES),
    Kind.UNCLEAR: Row(None, Charging.NEVER, Effect.NONE),
    Kind.LAPSED: Row(None, Charging.NEVER, Effect.NONE),
    Kind.EXPIRED: Row(False, Charging.NEVER, Effect.NONE),
    Kind.ACT: Row(None, Charging.NEVER, Effect.NONE),
}
"""Only what says something about the target's health counts as evidence: an answer of 422 or 429 does not."""


def is_charged(kind: Kind, seen: Seen | None, health: tuple[int, int] | None, now: float, probe: bool = False) -> bool:
    """Does this ending use up an attempt?

    *seen* is what the job knows from its earlier failures (None = this is the first, which is never charged),
    *health* the task's counters when it was claimed. A probe asks a target that is known to be sick, so what it
    meets is not the job's fault; only the handler's own word (``Retry``) is charged then.

    >>> is_charged(Kind.FAILED, None, None, now=0.0)
    False
    >>> is_charged(Kind.FAILED, (10, 20, 0.0), (13, 23), now=60.0)
    True
    >>> is_charged(Kind.FAILED, (10, 20, 0.0), (13, 24), now=60.0)
    False
    >>> is_charged(Kind.FAILED, (10, 20, 0.0), (10, 20), now=3599.0)
    False
    >>> is_charged(Kind.FAILED, (10, 20, 0.0), (10, 20), now=3600.0)
    True
    """
    charging = TABLE[kind].charging
    if probe and kind is not Kind.CHARGED:
        return False
    if charging is not Charging.BY_HEALTH or seen is None or health is None:
        return charging is Charging.ALWAYS
    ok, tried = health[0] - seen[0], health[1] - seen[1]
    return 0 <= 4 * tried <= 5 * ok and (ok >= PROVING or now - seen[2] >= QUIET)


def next_seen(seen: Seen | None, counters: tuple[int, int], charged: bool, now: float) -> Seen:
    """What the job remembers after a failure that counts; stores do the same in SQL.

    *counters* are the task's, this failure included. They are taken as they are now; the time stays while nobody
    else tried and nothing was charged, for the hour after which a lone job is charged.

    >>> next_seen(None, (10, 21), charged=False, now=50.0)
    (10, 21, 50.0)
    >>> next_seen((10, 21, 50.0), (10, 22), charged=False, now=90.0)
    (10, 22, 50.0)
    >>> next_seen((10, 21, 50.0), (12, 24), charged=False, now=90.0)
    (12, 24, 90.0)
    """
    alone = seen is not None and counters[1] - seen[1] <= 1
    return (*counters, seen[2] if seen is not None and alone and not charged else now)


def used_up(charged: int, attempts: int, claims: int, charging: bool, probe: bool = False) -> str:
    """Which budget this failure uses up, in words; empty while there is some left.

    *charged* are the charges so far, *claims* the tries so far with this one, *charging* whether this one is charged.

    >>> used_up(charged=2, attempts=3, claims=9, charging=True)
    '3 of 3 attempts'
    >>> used_up(charged=2, attempts=3, claims=502, charging=False)
    '500 tries without a charge'
    >>> used_up(charged=2, attempts=3, claims=9, charging=False)
    ''
    """
    if charging:
        return f"{charged + 1} of {attempts} attempts" if charged + 1 >= attempts else ""
    uncharged = claims - charged
    return f"{uncharged} tries without a charge" if uncharged >= MAX_UNCHARGED and not probe else ""
