"""The usual case in one round trip: common ends are settled, the next jobs of the lane taken, and both committed.

A worker that found all it wanted in one lane asks there again, in this way. The statement itself looks whether anything
else is due and takes nothing then; whatever it did not take is looked for in the thorough way.
"""

from __future__ import annotations

from collections.abc import Sequence

from treppe.job import Claim, Repeat, Settlement
from treppe.store.postgres.claims import Claims
from treppe.store.postgres.database import SQL, Database, Row, Tx
from treppe.store.postgres.scanning import Marks
from treppe.store.postgres.settling import Settling, is_usual
from treppe.store.protocol import Wanted


class Usual:
    """Remembers which lane the jobs come from."""

    def __init__(self, database: Database, marks: Marks) -> None:
        self._database, self._marks = database, marks
        self.lane: tuple[str, int] | None = None

    def fits(self, wanted: Wanted, settlements: Sequence[Settlement]) -> bool:
        """Whether it is worth trying."""
        return self.lane is not None and not wanted.alone and all(map(is_usual, settlements))

    def take(self, wanted: Wanted, settlements: Sequence[Settlement]) -> tuple[tuple[Claim, ...], Settling]:
        """The claims, up to what is wanted; and how the settling went, which may not be over."""
        queue, _ = self.lane or ("", 0)
        rows, now, settling = self._database.write(lambda tx: self._take(tx, wanted, settlements))
        if len(rows) < wanted.n or not settling.is_over:
            self.lane = None
        claims = [_claim(row, wanted, queue, now) for row in rows]
        if any(claim.token > 1 or row[-1] is not None for claim, row in zip(claims, rows, strict=True)):
            self._database.read(lambda tx: _fill(tx, wanted, claims, rows))
        return tuple(claims), settling

    def _take(self, tx: Tx, wanted: Wanted, settlements: Sequence[Settlement]) -> tuple[list[Row], float, Settling]:
        queue, band = self.lane or ("", 0)
        lane = (queue, band, wanted.tasks)
        began = self._marks.start(lane)
        queues = None if wanted.queues is None else list(wanted.queues)
        with tx.pipeline():
            settling = Settling(tx, settlements)
            ask = (wanted.worker, queue, band, queues, *began, sorted(wanted.tasks), wanted.n)
            answer = tx.send(SQL["claim_usual"], ask)
            tx.commit()
        rows = sorted(answer(), key=_place)
        _, found, _, _, _, _, _, run_at, _, took, now, *_, seq = rows.pop()
        if found:
            self._marks.keep(lane, began, (run_at, seq), took, found)
        return rows, now, settling


def is_common(claim: Claim) -> bool:
    """A claim of the kind that is taken here."""
    return claim.repeat is Repeat.SAFE and claim.seen is None


def _place(row: Row) -> tuple[bool, float, int]:
    return row[0] is None, row[7] or 0.0, row[0] or 0


def _claim(row: Row, wanted: Wanted, queue: str, now: float) -> Claim:
    (seq, token, task, key, tries, charged, attempts, _, crashes, due_at, expires_at, deadline_at, id, payload,
     content_type, _) = row  # fmt: skip
    return Claim(
        seq, id, token, wanted.worker, task, queue, payload, content_type, key, Repeat.SAFE, tries, charged, attempts,
        crashes, due_at, now, expires_at, deadline_at,
    )  # fmt: skip


def _fill(tx: Tx, wanted: Wanted, claims: Sequence[Claim], rows: Sequence[Row]) -> None:
    collected = Claims(tx, wanted.worker)
    for claim, row in zip(claims, rows, strict=True):
        collected.keep(claim, row[-1])
    collected.filled()
