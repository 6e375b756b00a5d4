"""Settling: the pure step between what a handler ended with and what a store writes.

``conclude`` knows the claim, the outcome and the rules; it decides the event, the charge, the wait and what the queue
learns. It touches nothing; the store only writes what it is given.
"""

from __future__ import annotations

from typing import Final

import msgspec

from treppe.config import DAY, Backoff
from treppe.job import Claim, Event, Kind, Outcome, Repeat, Report, Settlement
from treppe.policy.charge import TABLE, Effect, is_charged, used_up
from treppe.policy.lapse import after_lapse
from treppe.policy.retry import SHORT, backoff, snooze
from treppe.store.protocol import AfterLapse, Lapse, Lapsed
from treppe.store.text import clean

MAX_RESULT: Final = 65_536
"""Bytes of a result, and of its detail, that are kept."""


DONE: Final = Outcome(Kind.OK, acted=True)
"""The end that most jobs come to: it worked, and there is nothing to say about it."""


class Rules(msgspec.Struct, frozen=True):
    """What a task or destination sets; budgets and ``repeat`` come with the claim."""

    backoff: Backoff = Backoff()
    confirm_within: float = DAY


def conclude(claim: Claim, outcome: Outcome, rules: Rules, now: float, roll: float) -> Settlement:
    """What to write for a claim that ended with *outcome*. *now* is the store's clock, *roll* is in [0, 1).

    >>> claim = Claim(1, "invoice:42", 1, 7, "destination:crm", "crm", b"", "", None, Repeat.SAFE, claims=1,
    ...     charged=0, attempts=5, crashes=0, due_at=0.0, claimed_at=0.0, expires_at=14 * DAY, deadline_at=None)
    >>> conclude(claim, Outcome(Kind.OK, result=b"1"), Rules(), now=1.0, roll=0.5).event
    <Event.FINISH: 'finish'>
    >>> first = conclude(claim, Outcome(Kind.FAILED, error="500"), Rules(), now=1.0, roll=0.5)
    >>> first.event, first.charged, first.delay
    (<Event.DEFER: 'defer'>, False, 5.5)
    >>> conclude(claim, Outcome(Kind.REFUSED, error="422"), Rules(), now=1.0, roll=0.5).event
    <Event.BURY: 'bury'>
    """
    if outcome is DONE and not claim.probe:
        return Settlement(claim, Event.FINISH, Kind.OK, report=_SUCCESS)
    event = _event(claim, outcome)
    settlement = _settlement(claim, event, outcome, rules)
    if event is Event.DEFER:
        charged = is_charged(outcome.kind, claim.seen, claim.health, now, claim.probe)
        _retry_or_bury(settlement, charged, now)
        settlement.delay = _delay(claim, outcome, rules, roll)
    return settlement


def _after_lapse(facts: Lapsed) -> Lapse:
    """Say it in the store's words.

    >>> _after_lapse(Lapsed(Repeat.SAFE, suspect=True, cancelling=False, crashes=2, max_crashes=3)).event
    <Event.BURY: 'bury'>
    """
    decision = after_lapse(
        facts.repeat, facts.suspect, facts.cancelling, facts.crashes, facts.max_crashes, facts.looking
    )
    return Lapse(decision.event, decision.crashed, decision.error)


AFTER_LAPSE: Final[AfterLapse] = _after_lapse
"""What becomes of a job whose worker's lease ran out; handed to :meth:`treppe.store.protocol.Store.upkeep`."""


def _event(claim: Claim, outcome: Outcome) -> Event:
    """What the ending means for the job, as long as no budget is used up."""
    kind = outcome.kind
    if kind is Kind.OK:
        return Event.HAND_OVER if outcome.handed_over else Event.FINISH
    if kind is Kind.EXPIRED:
        return Event.BURY
    if kind is Kind.UNCLEAR or _may_have_acted(claim, outcome):
        return Event.DOUBT
    # A probe is not buried: in a queue that refuses everything the probes would bury one order each.
    return Event.BURY if kind is Kind.REFUSED and not claim.probe else Event.DEFER


def _may_have_acted(claim: Claim, outcome: Outcome) -> bool:
    """Nobody knows, and it matters. Whoever only looked, and got no answer, knows no more than before."""
    if claim.looking:
        return True
    known = outcome.acted if outcome.acted is not None else TABLE[outcome.kind].acted
    return known is not False and claim.repeat is not Repeat.SAFE


def _settlement(claim: Claim, event: Event, outcome: Outcome, rules: Rules) -> Settlement:
    result, detail = _bounded(outcome.result, outcome.detail)
    return Settlement(
        claim,
        event,
        outcome.kind,
        error=clean(outcome.error),
        result=result,
        detail=detail,
        report=_report(claim, outcome),
        counts=TABLE[outcome.kind].counts,
        started=outcome.kind is not Kind.RELEASED or outcome.acted is not False,
        confirm_within=rules.confirm_within,
    )


def _retry_or_bury(settlement: Settlement, charged: bool, now: float) -> None:
    claim, error = settlement.claim, settlement.error
    settlement.charged = charged
    reason = used_up(claim.charged, claim.attempts, claim.claims, charged, claim.probe)
    if now >= claim.expires_at:
        settlement.kind, reason = Kind.EXPIRED, "expired"
    if reason:
        settlement.event = Event.BURY
        settlement.error = clean(f"{reason}: {error}" if error else reason)


def _delay(claim: Claim, outcome: Outcome, rules: Rules, roll: float) -> float:
    """Seconds until the next try. Of a held queue the pace decides, so the job only has to stay out of the way."""
    if outcome.kind is Kind.RELEASED:
        return 0.0
    if outcome.kind in _WISHES and outcome.after is not None:
        return snooze(outcome.after)
    rule = SHORT if claim.probe or outcome.kind in _SOON else rules.backoff
    failures = 0 if claim.probe else max(0, claim.claims - 1)
    return backoff(rule, failures, roll, outcome.after)


_WISHES: Final = frozenset({Kind.SNOOZED, Kind.CHARGED})  # the handler's own word; all else comes from outside
_SOON: Final = frozenset({Kind.AGAIN, Kind.THROTTLED})
_TEACHES: Final = frozenset(kind for kind, row in TABLE.items() if row.effect not in (Effect.NONE, Effect.OPENS))
_SUCCESS: Final = Report(Kind.OK, 0)
"""One for all: a queue learns from a success only that there was one."""


def _report(claim: Claim, outcome: Outcome) -> Report | None:
    if claim.probe or outcome.kind in _TEACHES:
        return Report(outcome.kind, claim.seq, after=outcome.after, probe=claim.probe)
    return _SUCCESS if outcome.kind is Kind.OK else None


def _bounded(result: bytes | None, detail: bytes | None) -> tuple[bytes | None, bytes | None]:
    """What is too large is left out, and a note says so: the work is done, whatever became of its result."""
    if detail is not None and len(detail) > MAX_RESULT:
        detail = _noted(None, f"the detail of {len(detail)} bytes was not kept; the limit is {MAX_RESULT}")
    if result is not None and len(result) > MAX_RESULT:
        note = f"the result of {len(result)} bytes was not kept; the limit is {MAX_RESULT}"
        result, detail = None, _noted(detail, note)
    return result, detail


def _noted(detail: bytes | None, note: str) -> bytes:
    try:
        known = msgspec.json.decode(detail, type=dict[str, object]) if detail else {}
    except msgspec.DecodeError:
        known = {}
    return msgspec.json.encode({**known, "note": note})
