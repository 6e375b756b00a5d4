"""Claiming: which jobs a worker gets. One transaction, whatever it finds on the way.

Queues are served round robin; inside a queue the higher band goes first, but every tenth claim goes by age
alone, so nothing starves. A paced queue is asked for its grant before it is scanned, and once more with the
number of jobs that are really there, so nothing is granted that is not taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from treppe.job import Claim, Grant, Report
from treppe.store.protocol import Claimed, Pace, Wanted
from treppe.store.sqlite.claims import Claims
from treppe.store.sqlite.database import SQL, Connection
from treppe.store.sqlite.journal import value_of
from treppe.store.sqlite.putting import REPEATS
from treppe.store.sqlite.scanning import OKEY, QUEUE, REPEAT, SEEN_TRIED, SEQ, Marks, Row, Scan

AHEAD = 1.0
MAX_REPORTS = 500
PROBES = 10  # so many are looked at for one that never failed: it tells more about the other side


class Claimer:
    """Remembers, per process, whose turn it is."""

    def __init__(self) -> None:
        self._last_queue = ""
        self._marks = Marks()
        self._served: dict[str, int] = defaultdict(int)

    def claim(self, db: Connection, wanted: Wanted, pace: Pace, now: float) -> Claimed:
        """Take what may be taken for *wanted*; see :meth:`treppe.store.protocol.Store.claim`."""
        if not db.execute(SQL["worker_known"], (wanted.worker,)).fetchone():
            return Claimed()
        turn = _Turn(db, wanted, pace, now, self._marks)
        if wanted.alone:
            turn.take_one_suspect()
        else:
            self._serve_queues(turn)
        return Claimed(turn.finished(), (), turn.next_in(), turn.suspects_wait())

    def _serve_queues(self, turn: _Turn) -> None:
        heads = turn.due_heads()
        queues = self._round_robin(sorted(heads))
        share = -(-turn.wanted.n // max(1, len(queues)))
        for round_share in (share, turn.wanted.n):
            for queue in queues:
                if turn.room() <= 0:
                    return
                got = turn.take(queue, heads[queue], min(round_share, turn.room()), self._served[queue])
                if got:
                    self._served[queue] += got
                    self._last_queue = queue

    def _round_robin(self, queues: list[str]) -> list[str]:
        after = [queue for queue in queues if queue > self._last_queue]
        return after + [queue for queue in queues if queue <= self._last_queue]


class _Known(NamedTuple):
    """A queue's flow, what was reported since, and the slots in use."""

    queue: str
    flow: bytes | None
    reports: list[Report]
    folded: list[int]
    slots: set[int]


class _Turn:
    """One claim in one transaction."""

    def __init__(self, db: Connection, wanted: Wanted, pace: Pace, now: float, marks: Marks) -> None:
        self.db, self.wanted, self.pace, self.now = db, wanted, pace, now
        self.scan = Scan(db, wanted, now, marks)
        self.claims = Claims(db, wanted.worker, now)
        self.soonest: float | None = None
        self.closed: set[str] = set()  # paced queues that gave all they may

    def room(self) -> int:
        return self.wanted.n - len(self.claims)

    def due_heads(self) -> dict[str, list[int]]:
        """The bands with due jobs, by queue; remembers when the next job becomes due."""
        due: dict[str, list[int]] = defaultdict(list)
        for queue, band, head in self.db.execute(SQL["due_heads"]):
            if self.wanted.queues is None or queue in self.wanted.queues:
                if head <= self.now:
                    due[queue].append(band)
                else:
                    self._look_again_in(head - self.now)
        return due

    def take(self, queue: str, bands: list[int], want: int, served: int) -> int:
        """Take up to *want* jobs of one queue, as its pace and its order keys allow."""
        if queue in self.closed:
            return 0
        known = self._known(queue)
        if known is None:
            return self._take_free(queue, bands, want, served)
        return self._take_paced(queue, bands, want, served, known)

    def take_one_suspect(self) -> None:
        """One job that runs alone, of the first queue that lets one go."""
        for queue in self.scan.suspect_heads():
            for row in self.scan.suspects(queue)[:1]:
                self._take_suspect(row)
                if self.claims:
                    return

    def finished(self) -> tuple[Claim, ...]:
        return self.claims.filled()

    def next_in(self) -> float | None:
        if self.scan.sweep_in is not None:
            self._look_again_in(self.scan.sweep_in)
        return self.soonest

    def suspects_wait(self) -> bool:
        heads = self.scan.suspect_heads().values()
        for head in heads:
            if head > self.now:
                self._look_again_in(head - self.now)
        return any(head <= self.now for head in heads)

    def _take_free(self, queue: str, bands: list[int], want: int, served: int) -> int:
        rows = self.scan.candidates(queue, bands, want, served)
        self._take(rows, Grant(len(rows)))
        return len(rows)

    def _take_paced(self, queue: str, bands: list[int], want: int, served: int, known: _Known) -> int:
        grant = self._ask(known, want, AHEAD)
        rows = self._granted(queue, bands, grant, served) if grant.n else []
        risky = any(row[REPEAT] for row in rows)
        if risky or len(rows) != grant.n:  # keep only the flow of what is really taken
            grant = self._ask(known, len(rows), 0.0 if risky else AHEAD)
            rows = rows[: grant.n]
        self._keep_flow(known, grant)
        self._take(rows, grant, known.slots)
        if len(rows) < want:
            self.closed.add(queue)
        return len(rows)

    def _ask(self, known: _Known, want: int, ahead: float) -> Grant:
        """A grant that fits into the slots that are free; what the pace says beyond that does not count."""
        grant = self._grant(known, want, ahead)
        fits = want if grant.slots is None else min(want, max(0, grant.slots - len(known.slots)))
        if grant.n > fits:
            grant = self._grant(known, fits, ahead)
        return grant if grant.n <= fits else msgspec.structs.replace(grant, n=fits)

    def _grant(self, known: _Known, want: int, ahead: float) -> Grant:
        return self.pace.grant(known.queue, known.flow, known.reports, len(known.slots), self.now, want, ahead)

    def _granted(self, queue: str, bands: list[int], grant: Grant, served: int) -> list[Row]:
        if not grant.probe:
            return self.scan.candidates(queue, bands, grant.n, served)
        for repeat in range(len(REPEATS)):  # a probe is a job that may be repeated, if there is one
            for band in bands:
                if rows := self.scan.leaders(queue, band, PROBES, least=repeat, most=repeat):
                    return sorted(rows, key=lambda row: row[SEEN_TRIED] is not None)[:1]
        return []

    def _take_suspect(self, row: Row) -> None:
        known = self._known(row[QUEUE])
        if known is None:
            self._take([row], Grant(1))
            return
        grant = self._ask(known, 1, 0.0)
        self._keep_flow(known, grant)
        self._take([row][: grant.n], grant, known.slots)

    def _take(self, rows: Sequence[Row], grant: Grant, used: set[int] | None = None) -> None:
        if not rows:
            return
        slotted = grant.slots is not None
        if slotted:
            self._take_slots(rows, used or set())
        keyed = [(row[QUEUE], row[OKEY], row[SEQ]) for row in rows if row[OKEY] is not None]
        if keyed:
            self.db.executemany(SQL["key_take"], keyed)
        counted = 0 if grant.probe else 1
        seqs = msgspec.json.encode([row[SEQ] for row in rows]).decode()
        self.db.execute(SQL["claim_update"], (self.wanted.worker, counted, self.now, int(slotted), seqs))
        for i, row in enumerate(rows):
            start_at = grant.starts[i] if i < len(grant.starts) else 0.0
            self.scan.risky += 1 if row[REPEAT] else 0
            self.claims.add(row, 1, counted, start_at, slotted, grant.probe)

    def _take_slots(self, rows: Sequence[Row], used: set[int]) -> None:
        free = (n for n in range(len(used) + len(rows)) if n not in used)
        self.db.executemany(SQL["slot_take"], [(row[QUEUE], next(free), row[SEQ]) for row in rows])

    def _known(self, queue: str) -> _Known | None:
        """What is known of a queue's pace; None when nothing limits it."""
        flow = value_of(self.db, f"flow:{queue}")
        rows = self.db.execute(SQL["journal_page"], (f"report:{queue}", 0, MAX_REPORTS)).fetchall()
        if flow is None and not rows and not self.pace.limited(queue):
            return None
        reports = [msgspec.msgpack.decode(record, type=Report) for _, _, record in rows]
        slots = {n for (n,) in self.db.execute(SQL["slots_used"], (queue,))}
        return _Known(queue, flow, reports, [row[0] for row in rows], slots)

    def _keep_flow(self, known: _Known, grant: Grant) -> None:
        if grant.flow == b"":
            if known.flow is not None:
                self.db.execute(SQL["value_delete"], (f"flow:{known.queue}", known.flow))
        elif grant.flow is not None and grant.flow != known.flow:
            self.db.execute(SQL["value_put"], (f"flow:{known.queue}", grant.flow))
        if known.folded:
            self.db.executemany(SQL["journal_drop"], [(f"report:{known.queue}", seq) for seq in known.folded])
        if grant.wait is not None:
            self._look_again_in(grant.wait)

    def _look_again_in(self, seconds: float) -> None:
        if self.soonest is None or seconds < self.soonest:
            self.soonest = max(0.0, seconds)
