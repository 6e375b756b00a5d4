"""Settling: writing how claims ended, fenced by token and worker.

The common end (done, no slot, on time) is one statement for the whole batch, which is its own fence. Everything
else is locked, goes through the state machine, and is written in batches, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec

from treppe.errors import IllegalTransition
from treppe.job import Event, Kind, Settlement, State, When, advance
from treppe.store.alike import reports_by_queue
from treppe.store.postgres.database import SQL, Row, Tx
from treppe.store.postgres.writing import (
    CRASHED,
    HANDED_OVER,
    NOTHING_SEEN,
    UNCLEAR,
    Evidence,
    Key,
    Line,
    Live,
    Writes,
    columns,
    lock,
    missed,
    promote,
)
from treppe.store.text import clean

Answer = Callable[[], list[Row]]
_ENDS = frozenset({Event.FINISH, Event.HAND_OVER, Event.CONFIRM, Event.DEFER, Event.DOUBT, Event.BURY})


def settle(tx: Tx, settlements: Sequence[Settlement]) -> list[Settlement]:
    """Write all that still count; return those that were refused."""
    with tx.pipeline():
        settling = Settling(tx, settlements)
    return settling.end()


class Settling:
    """Sends the common ends on their way; :meth:`end` writes the rest, and says what was refused."""

    def __init__(self, tx: Tx, settlements: Sequence[Settlement]) -> None:
        self.wrote_more = False  # than what was sent at once
        self._tx, self._all = tx, settlements
        self._usual = {s.claim.seq: s for s in reversed(settlements) if is_usual(s)}  # of two the first counts
        told = [s for s in self._usual.values() if _has_more_to_say(s)]
        silent = [s for s in self._usual.values() if not _has_more_to_say(s)]
        if len(settlements) not in (len(silent), len(told)):  # several statements: no other may get in between
            tx.send(SQL["live_lock"], (sorted({s.claim.seq for s in settlements}),))
        self._ended: list[Answer] = []
        if silent:
            fences = columns(sorted(_fence(s) for s in silent))
            self._ended.append(tx.send(SQL["settle_finish"], fences))
        if told:
            self._ended.append(tx.send(SQL["settle_told"], columns(sorted(_telling(s) for s in told))))
        keys = sorted({(s.claim.queue, s.claim.key) for s in self._usual.values() if s.claim.key is not None})
        self._heads = tx.send(SQL["keys_promote"], columns(keys)) if keys else None
        queues = sorted({s.claim.queue for s in settlements if s.report is not None})
        self._watched = tx.send(SQL["watched"], (queues,)) if queues else None

    @cached_property
    def rest(self) -> list[Settlement]:
        """What was not written by what was sent at once."""
        seqs = {seq for rows in self._ended for (seq,) in rows()}
        return [s for s in self._all if s.claim.seq not in seqs or self._usual.get(s.claim.seq) is not s]

    @cached_property
    def watched(self) -> set[str]:
        """The queues that learn also from successes."""
        return set() if self._watched is None else {queue for (queue,) in self._watched()}

    @cached_property
    def missed(self) -> list[Key]:
        """Keys whose next job has vanished at that moment."""
        return missed(self._heads()) if self._heads is not None else []

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to write."""
        return not self.rest and not self.watched and not self.missed

    def go_on(self, tx: Tx) -> Settling:
        """What is left is written in another transaction."""
        self._tx = tx
        return self

    def end(self) -> list[Settlement]:
        """Write what is left; the refused ones."""
        refused = _settle_rest(self._tx, self.rest) if self.rest else []
        taught = _teach(self._tx, _without(self._all, refused) if refused else self._all, self.watched)
        promoted = promote(self._tx, self.missed)
        self.wrote_more = taught or bool(self.rest) or promoted > 0
        return refused


def _without(settlements: Sequence[Settlement], some: Sequence[Settlement]) -> list[Settlement]:
    ids = {id(s) for s in some}
    return [s for s in settlements if id(s) not in ids]


def is_usual(s: Settlement) -> bool:
    """Whether one statement for many such ends is all there is to write."""
    claim = s.claim
    return s.event is Event.FINISH and s.kind is Kind.OK and s.counts and not claim.slotted


def _has_more_to_say(s: Settlement) -> bool:
    """More than the live row knows."""
    return s.result is not None or s.detail is not None or bool(s.error) or s.claim.start_at > s.claim.claimed_at


def _fence(s: Settlement) -> tuple[int, int, int]:
    return s.claim.seq, s.claim.token, s.claim.worker


def _telling(s: Settlement) -> tuple[object, ...]:
    started_at = max(s.claim.start_at, s.claim.claimed_at)
    return *_fence(s), s.claim.due_at, started_at, clean(s.error), s.result, s.detail


def _settle_rest(tx: Tx, settlements: Sequence[Settlement]) -> list[Settlement]:
    """Through the state machine, in rounds: a second settlement of one job sees what the first one did."""
    refused: list[Settlement] = []
    left = list(settlements)
    while left:
        now = {s.claim.seq: s for s in reversed(left)}
        refused += _settle_round(tx, list(now.values())[::-1])
        left = [s for s in left if now[s.claim.seq] is not s]
    return refused


def _settle_round(tx: Tx, settlements: Sequence[Settlement]) -> list[Settlement]:
    """At most one settlement of each job."""
    rows = lock(tx, (s.claim.seq for s in settlements))
    writes, healths, refused = Writes(tx), _Healths(tx, settlements), list[Settlement]()
    for s in settlements:
        live = rows.get(s.claim.seq)
        target = _target(s, live) if live else None
        if live is None or target is None:
            refused.append(s)
        else:
            healths.count(s)
            crashes = live.crashes - (1 if live.lapsed == CRASHED else 0)
            _write(writes, s, live._replace(crashes=crashes), target, healths)
    if healths.counts:
        writes.add("health_add", columns([(task, *healths.counts[task]) for task in sorted(healths.counts)]))
    writes.flush()
    return refused


def _target(s: Settlement, live: Live) -> State | None:
    """The state that this settlement leads to; None when it does not count."""
    if (live.token, live.worker) != (s.claim.token, s.claim.worker) or s.event not in _ENDS:
        return None
    open_to_all = live.state in (State.RUNNING, State.HANDED_OVER) or s.event is Event.CONFIRM
    if not (open_to_all or live.lapsed):
        return None
    try:
        return advance(live.state, s.event, When.LATE if live.lapsed else When.ALWAYS)
    except IllegalTransition:
        return None


def _write(writes: Writes, s: Settlement, live: Live, target: State, healths: _Healths) -> None:
    if target is State.WAITING and live.cancel:
        writes.end(live, _line(s, Event.CANCEL))
    elif target is State.DONE:
        writes.end(live, _line(s), done=True)
    elif target is State.DEAD:
        writes.bury(live._replace(charged=live.charged + s.charged), _line(s), clean(s.error))
    elif target is State.WAITING:
        uncounted = not s.started and not s.claim.probe
        writes.defer(live, _line(s), s.delay, s.charged, uncounted, healths.evidence(s))
    elif target is State.HANDED_OVER:
        if s.claim.slotted and not live.slotted:  # it lapsed meanwhile
            writes.retake_slot(live)
        slotted = live.slotted or s.claim.slotted
        writes.put_aside(live._replace(slotted=slotted), _line(s), HANDED_OVER, s.confirm_within)
    else:
        writes.put_aside(live, _line(s), UNCLEAR, 0.0, healths.evidence(s))


def _line(s: Settlement, event: Event | None = None) -> Line:
    c = s.claim
    return Line(
        c.seq, c.token, event or s.event, s.kind, s.charged, c.due_at, max(c.start_at, c.claimed_at), c.worker,
        clean(s.error), s.result, s.detail,
    )  # fmt: skip


class _Healths:
    """How the attempts of each task ended: as it was, and with what this batch adds, one after the other."""

    def __init__(self, tx: Tx, settlements: Sequence[Settlement]) -> None:
        self._tx = tx
        self._now: float | None = None
        self.counts: dict[str, list[int]] = {}
        tasks = sorted({s.claim.task for s in settlements if s.counts and s.kind is not Kind.OK})
        self._before = {row[0]: row[1:] for row in tx.rows(SQL["health_of"], (tasks,))} if tasks else {}

    def count(self, s: Settlement) -> None:
        if s.counts:
            count = self.counts.setdefault(s.claim.task, [0, 0])
            count[0] += s.kind is Kind.OK
            count[1] += 1

    def evidence(self, s: Settlement) -> Evidence:
        """For the next charge, by the rule of ``policy.charge.next_seen``."""
        if not s.counts or s.kind is Kind.OK:
            return NOTHING_SEEN
        (ok, tried), (more_ok, more) = self._before.get(s.claim.task, (0, 0)), self.counts[s.claim.task]
        before = s.claim.seen
        alone = before is not None and tried + more - before[1] <= 1
        at = before[2] if before is not None and alone and not s.charged else self._tx.now()
        return ok + more_ok, tried + more, at


def _teach(tx: Tx, settlements: Sequence[Settlement], watched: set[str]) -> bool:
    """Append the reports; True if any. A success teaches nothing to a queue of which nothing is known."""
    taught = False
    for queue, reports in reports_by_queue(settlements).items():
        if queue in watched or any(report.kind is not Kind.OK for report in reports):
            taught = True
            tx.send(SQL["report_add"], (queue, [msgspec.msgpack.encode(report) for report in reports]))
    return taught
