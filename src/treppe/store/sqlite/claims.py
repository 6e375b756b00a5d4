"""Claims from rows, with their events and notes filled in."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from treppe.job import Claim
from treppe.store.protocol import MAX_BATCH
from treppe.store.sqlite.database import SQL, Connection
from treppe.store.sqlite.putting import REPEATS
from treppe.store.sqlite.scanning import Row


def held(db: Connection, worker: int, now: float) -> tuple[Claim, ...]:
    """The running claims of a worker; see :meth:`treppe.store.protocol.Store.held`."""
    claims = Claims(db, worker, now)
    for *row, slotted in db.execute(SQL["held_select"], (worker, MAX_BATCH)):
        claims.add(tuple(row), slotted=bool(slotted))
    return claims.filled()


class Claims:
    """Collects the claims of one worker in one transaction."""

    def __init__(self, db: Connection, worker: int, now: float) -> None:
        self._db, self._worker, self._now = db, worker, now
        self._claims: list[Claim] = []
        self._events: dict[int, list[Claim]] = defaultdict(list)
        self._healths: dict[str, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._claims)

    def add(
        self,
        row: Row,
        taken: int = 0,
        counted: int = 0,
        start_at: float = 0.0,
        slotted: bool = False,
        probe: bool = False,
    ) -> None:
        """One row as it was read; *taken* and *counted* is what the claim has added to its token and its tries."""
        (seq, id, token, task, queue, payload, content_type, okey, repeat, claims, charged, attempts, crashes,
         due_at, expires_at, deadline_at, seen_ok, seen_tried, seen_at, event, _, suspect) = row  # fmt: skip
        seen = None if seen_tried is None else (seen_ok, seen_tried, seen_at)
        claim = Claim(
            seq, id, token + taken, self._worker, task, queue, payload, content_type, okey, REPEATS[repeat],
            claims + counted, charged, attempts, crashes, due_at, self._now, expires_at, deadline_at, start_at,
            bool(suspect), probe, False, slotted, seen, self._health(task) if seen else None,
        )  # fmt: skip
        self._claims.append(claim)
        if event is not None:
            self._events[event].append(claim)

    def filled(self) -> tuple[Claim, ...]:
        """All of them, complete."""
        if self._events:
            self._fill_events()
        self._fill_notes()
        return tuple(self._claims)

    def _health(self, task: str) -> tuple[int, int]:
        if task not in self._healths:
            self._healths[task] = self._db.execute(SQL["health_of"], (task,)).fetchone() or (0, 0)
        return self._healths[task]

    def _fill_events(self) -> None:
        seqs = msgspec.json.encode(list(self._events)).decode()
        for seq, source, id, topic, body, content_type, headers in self._db.execute(SQL["events_of"], (seqs,)):
            pairs = tuple((name, value) for name, value in msgspec.json.decode(headers))
            for claim in self._events[seq]:
                claim.event, claim.topic, claim.headers = (source, id), topic, pairs
                claim.payload, claim.content_type = body, content_type

    def _fill_notes(self) -> None:
        again = {claim.seq: claim for claim in self._claims if claim.token > 1}
        if again:
            seqs = msgspec.json.encode(list(again)).decode()
            for seq, name, value in self._db.execute(SQL["notes_of"], (seqs,)):
                claim = again[seq]
                claim.notes = {**(claim.notes or {}), name: bytes(value)}
