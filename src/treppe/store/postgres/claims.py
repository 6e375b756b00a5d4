"""Claims from rows, with their events and notes filled in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from treppe.job import Claim
from treppe.store.postgres.database import SQL, Row, Tx
from treppe.store.postgres.putting import REPEATS
from treppe.store.protocol import MAX_BATCH


def held(tx: Tx, worker: int) -> tuple[Claim, ...]:
    """The running claims of a worker; see :meth:`treppe.store.protocol.Store.held`."""
    claims = Claims(tx, worker)
    for *row, started_at in tx.rows(SQL["held_select"], (worker, MAX_BATCH)):
        claims.add(tuple(row), started_at)
    return claims.filled()


class Claims:
    """Collects the claims of one worker in one transaction."""

    def __init__(self, tx: Tx, worker: int) -> None:
        self._tx, self._worker = tx, worker
        self.all: list[Claim] = []
        self._events: dict[int, list[Claim]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self.all)

    def add(self, row: Row, claimed_at: float, start_at: float = 0.0, probe: bool = False) -> None:
        """One row as ``claim_take.sql`` and ``held_select.sql`` give it."""
        (seq, token, task, queue, okey, repeat, tries, charged, attempts, crashes, due_at, expires_at, deadline_at,
         seen_ok, seen_tried, seen_at, suspect, slotted, id, payload, content_type, event) = row  # fmt: skip
        seen = None if seen_tried is None else (seen_ok, seen_tried, seen_at)
        claim = Claim(
            seq, id, token, self._worker, task, queue, payload, content_type, okey, REPEATS[repeat], tries, charged,
            attempts, crashes, due_at, claimed_at, expires_at, deadline_at, start_at, suspect, probe, False, slotted,
            seen,
        )  # fmt: skip
        self.keep(claim, event)

    def keep(self, claim: Claim, event: int | None) -> None:
        """A claim, and the number of its event."""
        self.all.append(claim)
        if event is not None:
            self._events[event].append(claim)

    def filled(self) -> tuple[Claim, ...]:
        """All of them, complete."""
        again = [claim for claim in self.all if claim.token > 1]
        if again or self._events:
            with self._tx.pipeline():
                events = self._tx.send(SQL["events_of"], (sorted(self._events),))
                notes = self._tx.send(SQL["notes_of"], (sorted(claim.seq for claim in again),))
                tasks = sorted({claim.task for claim in again if claim.seen})
                healths = self._tx.send(SQL["health_of"], (tasks,))
            self._fill_events(events())
            _fill_notes(again, notes())
            _fill_healths(again, healths())
        return tuple(self.all)

    def _fill_events(self, rows: Iterable[Row]) -> None:
        for seq, source, id, topic, body, content_type, headers in rows:
            pairs = tuple((name, value) for name, value in msgspec.json.decode(headers))
            for claim in self._events[seq]:
                claim.event, claim.topic, claim.headers = (source, id), topic, pairs
                claim.payload, claim.content_type = body, content_type


def _fill_notes(claims: Iterable[Claim], rows: Iterable[Row]) -> None:
    by_seq = {claim.seq: claim for claim in claims}
    for seq, name, value in rows:
        claim = by_seq[seq]
        claim.notes = {**(claim.notes or {}), name: value}


def _fill_healths(claims: Iterable[Claim], rows: Iterable[Row]) -> None:
    by_task = {task: (ok, tried) for task, ok, tried in rows}
    for claim in claims:
        if claim.seen:
            claim.health = by_task.get(claim.task, (0, 0))
