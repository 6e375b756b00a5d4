"""Which rows a claim looks at, and which of them may start now."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from treppe.store.protocol import Wanted
from treppe.store.sqlite.database import SQL, Connection
from treppe.store.sqlite.putting import REPEATS

MAX_PARKED = 500
AGED_EVERY = 10

Row = tuple[Any, ...]
SEQ, QUEUE, OKEY, REPEAT, DUE_AT, SEEN_TRIED, RUN_AT = 0, 4, 7, 8, 13, 17, 20

Place = tuple[float, int]
Lane = tuple[str, int, frozenset[str]]
START: Place = (float("-inf"), 0)
QUICK = 0.002


class Marks:
    """Low-water marks: where a lane's claimable rows begin, when everything before is not for this worker.

    A scan that had to walk far (a backlog of tasks nobody here knows) leaves a mark, and the next ones begin
    there; a full sweep finds what appeared behind it, at most every twenty times as long as the sweep took. A
    scan that is quick, or walked past nothing, leaves none: on a healthy store there are no marks.
    """

    def __init__(self) -> None:
        self._places: dict[Lane, tuple[Place, float]] = {}

    def start(self, lane: Lane) -> Place:
        """Where to begin."""
        place, until = self._places.get(lane, (START, 0.0))
        if time.perf_counter() < until:
            return place
        self._places.pop(lane, None)
        return START

    def left(self, lane: Lane) -> float | None:
        """Seconds until the lane's next full sweep, or None where there is no mark."""
        _, until = self._places.get(lane, (START, 0.0))
        return max(0.0, until - time.perf_counter()) if until else None

    def keep(self, lane: Lane, place: Place, took: float) -> None:
        """Remember where the first row was found."""
        until = time.perf_counter() + max(1.0, 20 * took)
        self._places[lane] = (place, self._places.get(lane, (place, until))[1])


class Scan:
    """The rows of one claim."""

    def __init__(self, db: Connection, wanted: Wanted, now: float, marks: Marks) -> None:
        self.db, self.wanted, self.now = db, wanted, now
        self.tasks = msgspec.json.encode(sorted(wanted.tasks)).decode()
        self.risky = 0  # jobs taken that must not be repeated
        self.sweep_in: float | None = None  # seconds until a lane is looked at again from its beginning
        self._marks = marks

    def suspect_heads(self) -> dict[str, float]:
        """The queues with suspects for this worker, and when the first of each may run."""
        heads = self.db.execute(SQL["suspect_heads"], (self.tasks,))
        return {queue: head for queue, head in heads if self._is_wanted(queue)}

    def suspects(self, queue: str) -> list[Row]:
        """The first suspects of a queue that may run now, each of them alone."""
        rows = self.db.execute(SQL["suspect_select"], (self.now, self.tasks, queue)).fetchall()
        return [row for row in rows if self._leads_its_key(row)]

    def candidates(self, queue: str, bands: list[int], want: int, served: int) -> list[Row]:
        """Jobs that may start now: by band, and a tenth of them by age alone."""
        aged = (served + want) // AGED_EVERY - served // AGED_EVERY if len(bands) > 1 else 0
        rows: list[Row] = []
        for _ in range(aged):
            oldest = [row for band in bands for row in self.leaders(queue, band, 1, skip=rows)]
            rows += sorted(oldest, key=lambda row: (row[DUE_AT], row[SEQ]))[:1]
        for band in bands:
            rows += self.leaders(queue, band, want - len(rows), skip=rows)
            if len(rows) >= want:
                break
        return rows

    def leaders(
        self, queue: str, band: int, want: int, skip: Sequence[Row] = (), least: int = 0, most: int = len(REPEATS) - 1
    ) -> list[Row]:
        """Up to *want* claimable jobs of a band; those behind their key are parked and looked past."""
        taken = {row[SEQ] for row in skip}
        found: list[Row] = []
        risky = self.risky + sum(1 for row in skip if row[REPEAT])
        keys = {row[OKEY] for row in skip if row[OKEY] is not None}
        lane = (queue, band, self.wanted.tasks)
        after = self._marks.start(lane) if most == len(REPEATS) - 1 else START
        parked = 0
        while len(found) < want:
            if parked >= MAX_PARKED:  # the next claim goes on here
                self._remember_sweep(0.0)
                break
            if risky >= self.wanted.free:
                most = 0
            limit = want - len(found) + len(taken)
            began = time.perf_counter()
            ask = (queue, band, self.now, *after, self.tasks, most, least, limit)
            rows = self.db.execute(SQL["due_select"], ask).fetchall()
            took = time.perf_counter() - began
            if took > QUICK and most == len(REPEATS) - 1:
                self._keep_mark(lane, rows, took)
            for row in rows:
                after = (row[RUN_AT], row[SEQ])
                if row[SEQ] in taken or len(found) >= want or (row[REPEAT] and risky >= self.wanted.free):
                    continue
                if row[OKEY] is not None and (row[OKEY] in keys or not self._leads_its_key(row)):
                    parked += self.db.execute(SQL["park"], (row[SEQ],)).rowcount
                    continue
                keys.add(row[OKEY])
                risky += 1 if row[REPEAT] else 0
                found.append(row)
            if len(rows) < limit:
                self._remember_sweep(self._marks.left(lane))
                break
        return found

    def _keep_mark(self, lane: Lane, rows: list[Row], took: float) -> None:
        place = (rows[0][RUN_AT], rows[0][SEQ] - 1) if rows else (self.now, 0)
        first = self.db.execute(SQL["due_first"], lane[:2]).fetchone()
        if first is not None and first <= place:  # else it was the machine that was slow
            self._marks.keep(lane, place, took)

    def _remember_sweep(self, left: float | None) -> None:
        if left is not None:
            self.sweep_in = left if self.sweep_in is None else min(self.sweep_in, left)

    def _is_wanted(self, queue: str) -> bool:
        return self.wanted.queues is None or queue in self.wanted.queues

    def _leads_its_key(self, row: Row) -> bool:
        if row[OKEY] is None:
            return True
        holder = self.db.execute(SQL["key_holder"], (row[QUEUE], row[OKEY])).fetchone()
        if holder is not None:
            return bool(holder[0] == row[SEQ])
        head = self.db.execute(SQL["key_head"], (row[QUEUE], row[OKEY], self.now)).fetchone()
        if head is None:  # the clock stepped back: nobody of this key is due by it
            return True
        seq, parked = head
        if seq != row[SEQ] and parked == 1:
            self.db.execute(SQL["unpark"], (seq,))
        return bool(seq == row[SEQ])
