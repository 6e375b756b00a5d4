"""The reconciliation: what the ledgers of the outside world say, against what was promised. Pure.

Nothing Treppe says about itself counts as a delivery; its store is only asked for the state jobs are in,
for their attempts, and whether everything that was accepted is there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from treppe.demo.friday import DESTINATIONS, Friday, event_in
from treppe.demo.ledger import Line, Posted, Told
from treppe.job import Job, Kind, State

HOLD_PERIOD = 180.0


class Kill(msgspec.Struct, frozen=True):
    """A process that was ended with kill -9: the name it logged in with, and when."""

    who: str
    at: float


class Evidence(msgspec.Struct, frozen=True):
    """Everything the reconciliation looks at. Jobs that were claimed more than once come with their history."""

    friday: Friday
    posted: Sequence[Posted]
    ledgers: Mapping[str, Sequence[Line]]
    told: Sequence[Told] = ()
    jobs: Sequence[Job] = ()
    queued: bool = True  # False for the run without a queue
    kill: Kill | None = None
    unclear_on_the_way: int = 0
    peak_backlog: int = 0
    peak_age: float = 0.0

    @property
    def orders(self) -> dict[int, Posted]:
        """Every order the shop made, by number, as its first posting went."""
        return {line.order: line for line in reversed(self.posted) if not line.again}

    def expected(self, destination: str) -> set[int]:
        """The orders that must have arrived there: all, but the one that is broken there."""
        return set(self.orders) - {self.friday.broken.get(destination, 0)}


class Figures(msgspec.Struct, frozen=True):
    """What ``--json`` prints, in this order."""

    accepted: int
    accept_p99_ms: float
    delivered: dict[str, int]
    duplicates_at_remote: int
    order_violations: int
    dead: int
    unclear_on_the_way: int
    unclear: int
    attempts_charged_by_outage: int
    lost: int
    peak_backlog: int
    peak_age_s: float
    restart_after_kill_s: float | None
    promises_broken: int


class Promise(msgspec.Struct, frozen=True):
    """One promise and whether it was kept; ``detail`` holds the figures it rests on."""

    text: str
    kept: bool
    detail: str


class Repeat(msgspec.Struct, frozen=True):
    """A call after one that had acted, was told so, or hung. ``why`` is empty where nothing excuses it."""

    destination: str
    order: int
    doubled: bool  # it acted a second time
    why: str


class Result(msgspec.Struct, frozen=True):
    """All of it, for people and for machines."""

    figures: Figures
    promises: list[Promise]
    excused: list[Repeat]
    holds: int
    accept_p50_ms: float


def reconcile(evidence: Evidence) -> Result:
    """Compare the ledgers with the promises."""
    repeats = [repeat for name in DESTINATIONS for repeat in repeats_at(evidence, name)]
    inexcusable = [repeat for repeat in repeats if not repeat.why]
    promises = [
        _accepted(evidence),
        _once(evidence, inexcusable),
        _unclear(evidence),
        _dead(evidence),
        _alerted(evidence),
        _in_order(evidence),
        _not_charged(evidence),
        _few_holds(evidence),
    ]
    figures = Figures(
        accepted=sum(line.accepted for line in evidence.orders.values()),
        accept_p99_ms=_quantile(evidence, 0.99),
        delivered={name: len(arrived(evidence.ledgers[name])) for name in DESTINATIONS},
        duplicates_at_remote=sum(repeat.doubled for repeat in repeats),
        order_violations=sum(overtaken(evidence.ledgers[name]) for name in DESTINATIONS),
        dead=len(_dead_jobs(evidence)),
        unclear_on_the_way=evidence.unclear_on_the_way,
        unclear=sum(job.state is State.UNCLEAR for job in evidence.jobs),
        attempts_charged_by_outage=charged_by_outage(evidence),
        lost=lost(evidence),
        peak_backlog=evidence.peak_backlog,
        peak_age_s=round(evidence.peak_age, 1),
        restart_after_kill_s=restart_after_kill(evidence),
        promises_broken=sum(not promise.kept for promise in promises),
    )
    excused = [repeat for repeat in repeats if repeat.why]
    return Result(figures, promises, excused, holds(evidence.ledgers["accounting"]), _quantile(evidence, 0.5))


def arrived(lines: Iterable[Line]) -> set[int]:
    """The orders that took effect."""
    return {line.order for line in lines if line.acted}


def lost(evidence: Evidence) -> int:
    """Orders that never took effect somewhere, summed over the destinations."""
    return sum(len(evidence.expected(name) - arrived(evidence.ledgers[name])) for name in DESTINATIONS)


def repeats_at(evidence: Evidence, destination: str) -> list[Repeat]:
    """Every call that came after the order had taken effect, or after the caller had been told so."""
    by_order: defaultdict[int, list[Line]] = defaultdict(list)
    for line in evidence.ledgers[destination]:
        by_order[line.order].append(line)
    lapsed = {number for number, job in _jobs_at(evidence, destination).items() if _lapses(job)}
    return [
        _repeat(destination, lines[:n], line, evidence.kill if order in lapsed else None)
        for order, lines in by_order.items()
        for n, line in enumerate(lines)
        if any(before.acted or before.told or before.answer is None for before in lines[:n])
    ]


def _repeat(destination: str, earlier: Sequence[Line], line: Line, kill: Kill | None) -> Repeat:
    acted = any(before.acted for before in earlier)
    told = [before for before in earlier if before.told]
    doubled, why = line.acted and acted, ""
    if doubled:
        pass
    elif not told:
        why = "the first acted without an answer" if acted else "the first hung"
    elif kill and len(told) == 1 and told[0].who == kill.who and told[0].at <= kill.at:
        why = "the killed worker took the answer with it"
    return Repeat(destination, line.order, doubled, why)


def overtaken(lines: Iterable[Line]) -> int:
    """How many orders took effect after a later one of the same customer; an order counts once.

    >>> def line(order, seq): return Line(0.0, order, 7, seq, None, "up", 201, True)
    >>> overtaken([line(1, 1), line(3, 3), line(2, 2), line(1, 1)])
    1
    """
    latest: dict[int, int] = {}
    seen: set[int] = set()
    violations = 0
    for line in lines:
        if not line.acted or line.order in seen:
            continue
        seen.add(line.order)
        violations += line.seq < latest.get(line.customer, 0)
        latest[line.customer] = max(line.seq, latest.get(line.customer, 0))
    return violations


def holds(lines: Iterable[Line]) -> int:
    """How often accounting had to shut: 429s in a row count as one.

    >>> def line(at, answer): return Line(at, 1, 1, 1, None, "up", answer, answer == 201)
    >>> holds([line(1, 201), line(2, 429), line(3, 429), line(9, 201), line(12, 429)])
    2
    """
    answers = [line.answer for line in sorted(lines, key=lambda line: line.at)]
    return sum(now == 429 != before for before, now in zip([None, *answers], answers, strict=False))


def charged_by_outage(evidence: Evidence) -> int:
    """Charged attempts of orders that are not broken: only throttling and outage made those fail."""
    broken = _broken_ids(evidence)
    return sum(attempt.charged for job in evidence.jobs if job.id not in broken for attempt in job.history)


def restart_after_kill(evidence: Evidence) -> float | None:
    """Seconds from the kill until the last job of the killed worker was free again or shown as unclear."""
    lapses = [at for job in evidence.jobs for at in _lapses(job)]
    after = [at - evidence.kill.at for at in lapses if at > evidence.kill.at] if evidence.kill else []
    return round(max(after), 1) if after else None


def _lapses(job: Job) -> list[float]:
    return [attempt.finished_at for attempt in job.history if attempt.kind is Kind.LAPSED]


def _jobs_at(evidence: Evidence, destination: str) -> dict[int, Job]:
    numbers = {line.event: line.order for line in evidence.posted}
    task = f"destination:{destination}"
    return {numbers.get(event_in(job.event[1]), 0): job for job in evidence.jobs if job.event and job.task == task}


def _broken_ids(evidence: Evidence) -> set[str]:
    found = {name: _jobs_at(evidence, name).get(number) for name, number in evidence.friday.broken.items()}
    return {job.id for job in found.values() if job}


def _dead_jobs(evidence: Evidence) -> set[str]:
    return {job.id for job in evidence.jobs if job.state is State.DEAD}


def _quantile(evidence: Evidence, q: float) -> float:
    """Milliseconds until the shop had its 2xx."""
    times = sorted(line.ms for line in evidence.posted if line.accepted)
    return round(times[min(len(times) - 1, int(q * len(times)))], 1) if times else 0.0


def _accepted(evidence: Evidence) -> Promise:
    refused = sum(not line.accepted for line in evidence.orders.values())
    there = Counter(event_in(job.event[1]) for job in evidence.jobs if job.event)
    accepted = [line.event for line in evidence.orders.values() if line.accepted]
    missing = sum(there[event] != len(DESTINATIONS) for event in accepted) if evidence.queued else 0
    detail = f"{len(evidence.orders)} made, {refused} not accepted, {missing} accepted and not in the store"
    return Promise("every order is accepted, and every accepted order is there", not refused + missing, detail)


def _once(evidence: Evidence, inexcusable: Sequence[Repeat]) -> Promise:
    gone, doubled = lost(evidence), sum(repeat.doubled for repeat in inexcusable)
    needless = len(inexcusable) - doubled
    unknown = sum(len(arrived(evidence.ledgers[name]) - set(evidence.orders)) for name in DESTINATIONS)
    text = "exactly one call that acted per order and destination, but for the broken ones"
    detail = f"{gone} lost, {doubled} doubled, {needless} called again without need"
    detail += f", {unknown} that nobody ordered" if unknown else ""
    return Promise(text, not gone + doubled + needless + unknown, detail)


def _unclear(evidence: Evidence) -> Promise:
    left = sum(job.state not in (State.DONE, State.DEAD) for job in evidence.jobs)
    unclear = sum(job.state is State.UNCLEAR for job in evidence.jobs)
    detail = f"{evidence.unclear_on_the_way} on the way, {unclear} at the end"
    detail += f", {left} jobs not at their end" if left else ""
    return Promise("what is unclear is shown, and settled in the end", evidence.unclear_on_the_way > 0 == left, detail)


def _dead(evidence: Evidence) -> Promise:
    dead, broken = _dead_jobs(evidence), _broken_ids(evidence)
    kept = dead == broken and len(broken) == len(evidence.friday.broken)
    detail = f"{len(dead & broken)} of {len(evidence.friday.broken)} dead, and {len(dead - broken)} others"
    return Promise("the two broken orders are dead letters, and nothing else is", kept, detail)


def _alerted(evidence: Evidence) -> Promise:
    ids = _broken_ids(evidence)
    heard = {channel: sum(_names(evidence.told, channel, id) for id in ids) for channel in ("webhook", "mail")}
    forged = sum(not told.genuine for told in evidence.told)
    kept = not forged and all(n == len(evidence.friday.broken) for n in heard.values())
    detail = ", ".join(f"{n} by {channel}" for channel, n in heard.items()) + f", {forged} badly signed"
    return Promise("a human was told of both, by signed webhook and by mail", kept, detail)


def _names(told: Iterable[Told], channel: str, id: str) -> bool:
    return any(message.channel == channel and message.genuine and id in message.text for message in told)


def _in_order(evidence: Evidence) -> Promise:
    found = {name: overtaken(evidence.ledgers[name]) for name in DESTINATIONS}
    detail = ", ".join(f"{name} {n}" for name, n in found.items() if n) or "0 overtaken"
    return Promise("no customer's events overtook each other anywhere", not any(found.values()), detail)


def _not_charged(evidence: Evidence) -> Promise:
    charged = charged_by_outage(evidence)
    return Promise("no attempt was charged by throttling or outage", not charged, f"{charged} charged")


def _few_holds(evidence: Evidence) -> Promise:
    lines = evidence.ledgers["accounting"]
    times = [line.at for line in lines] or [0.0]
    found, allowed = holds(lines), int((max(times) - min(times)) // HOLD_PERIOD) + 1
    text = "accounting shut at most once per started 3 minutes"
    return Promise(text, found <= allowed, f"{found} of {allowed} allowed")
