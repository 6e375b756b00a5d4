"""Claiming: which jobs a worker gets. One transaction, whatever it finds on the way.

Queues are served round robin; inside a queue the higher band goes first, but every tenth claim goes by age
alone, so nothing starves. A paced queue is asked for its grant before it is scanned, and once more with the
number of jobs that are really there, so nothing is granted that is not taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from treppe.job import Claim, Grant, Report
from treppe.store.protocol import Claimed, Pace, Wanted
from treppe.store.sqlite.database import SQL, Connection
from treppe.store.sqlite.journal import value_of
from treppe.store.sqlite.putting import REPEATS

MAX_PARKED = 500
AHEAD = 1.0
AGED_EVERY = 10

Row = tuple[Any, ...]
SEQ, TOKEN, QUEUE, OKEY, REPEAT, DUE_AT, EVENT, RUN_AT = 0, 2, 4, 7, 8, 13, 19, 20


class Claimer:
    """Remembers, per process, whose turn it is."""

    def __init__(self) -> None:
        self._last_queue = ""
        self._served: dict[str, int] = defaultdict(int)

    def claim(self, db: Connection, wanted: Wanted, pace: Pace, now: float) -> Claimed:
        """Take what may be taken for *wanted*; see :meth:`treppe.store.protocol.Store.claim`."""
        if not db.execute(SQL["worker_known"], (wanted.worker,)).fetchone():
            return Claimed()
        turn = _Turn(db, wanted, pace, now)
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


class _Turn:
    """One claim in one transaction."""

    def __init__(self, db: Connection, wanted: Wanted, pace: Pace, now: float) -> None:
        self.db, self.wanted, self.pace, self.now = db, wanted, pace, now
        self.tasks = msgspec.json.encode(sorted(wanted.tasks)).decode()
        self.claims: list[Claim] = []
        self.events: dict[int, list[Claim]] = defaultdict(list)
        self.risky = 0  # jobs taken that must not be repeated
        self.parked = 0
        self.soonest: float | None = None
        self.health: dict[str, tuple[int, int]] = {}
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
        flow, reports, seqs = self._flow(queue)
        if flow is None and not reports and not self.pace.limited(queue):
            return self._take_free(queue, bands, want, served)
        return self._take_paced(queue, bands, want, served, flow, reports, seqs)

    def take_one_suspect(self) -> None:
        for row in self.db.execute(SQL["suspect_select"], (self.now, self.tasks)).fetchall():
            if self._leads_its_key(row):
                self._take_suspect(row)
                if self.claims:
                    return

    def finished(self) -> tuple[Claim, ...]:
        """The claims, with their events and notes filled in."""
        self._fill_events()
        self._fill_notes()
        return tuple(self.claims)

    def next_in(self) -> float | None:
        return self.soonest

    def suspects_wait(self) -> bool:
        head = self.db.execute(SQL["suspect_any"]).fetchone()[0]
        if head is not None and head > self.now:
            self._look_again_in(head - self.now)
        return head is not None and head <= self.now

    def _take_free(self, queue: str, bands: list[int], want: int, served: int) -> int:
        rows = self._candidates(queue, bands, want, served)
        self._take(rows, Grant(len(rows)))
        return len(rows)

    def _take_paced(
        self, queue: str, bands: list[int], want: int, served: int,
        flow: bytes | None, reports: list[Report], seqs: list[int],
    ) -> int:  # fmt: skip
        used = {row[0] for row in self.db.execute(SQL["slots_used"], (queue,))}
        ask = (queue, flow, reports, len(used), self.now)
        grant = self.pace.grant(*ask, want, AHEAD)
        rows = [] if grant.n == 0 else self._granted(queue, bands, grant, served)
        if len(rows) != want or any(row[REPEAT] for row in rows):
            ahead = 0.0 if any(row[REPEAT] for row in rows) else AHEAD
            grant = self.pace.grant(*ask, len(rows), ahead)
            rows = rows[: grant.n]
        self._keep_flow(queue, flow, grant, seqs)
        self._take(rows, grant, used)
        if grant.wait is not None:
            self._look_again_in(grant.wait)
        if len(rows) < want:
            self.closed.add(queue)
        return len(rows)

    def _granted(self, queue: str, bands: list[int], grant: Grant, served: int) -> list[Row]:
        if not grant.probe:
            return self._candidates(queue, bands, grant.n, served)
        for repeat in range(len(REPEATS)):  # a probe is a job that may be repeated, if there is one
            for band in bands:
                if rows := self._leaders(queue, band, 1, least=repeat, most=repeat):
                    return rows
        return []

    def _candidates(self, queue: str, bands: list[int], want: int, served: int) -> list[Row]:
        """Jobs that may start now: by band, and a tenth of them by age alone."""
        aged = (served + want) // AGED_EVERY - served // AGED_EVERY if len(bands) > 1 else 0
        rows: list[Row] = []
        for _ in range(aged):
            oldest = [row for band in bands for row in self._leaders(queue, band, 1, skip=rows)]
            rows += sorted(oldest, key=lambda row: (row[DUE_AT], row[SEQ]))[:1]
        for band in bands:
            rows += self._leaders(queue, band, want - len(rows), skip=rows)
            if len(rows) >= want:
                break
        return rows

    def _leaders(
        self, queue: str, band: int, want: int, skip: Sequence[Row] = (), least: int = 0, most: int = len(REPEATS) - 1
    ) -> list[Row]:
        """Up to *want* claimable jobs of a band; those behind their key are parked and looked past."""
        taken = {row[SEQ] for row in skip}
        found: list[Row] = []
        risky = self.risky + sum(1 for row in skip if row[REPEAT])
        keys = {row[OKEY] for row in skip if row[OKEY] is not None}
        after: tuple[float, int] = (float("-inf"), 0)
        while len(found) < want and self.parked < MAX_PARKED:
            if risky >= self.wanted.free:
                most = 0
            limit = want - len(found) + len(taken)
            rows = self.db.execute(
                SQL["due_select"], (queue, band, self.now, *after, self.tasks, most, least, limit)
            ).fetchall()
            for row in rows:
                after = (row[RUN_AT], row[SEQ])
                if row[SEQ] in taken or len(found) >= want or (row[REPEAT] and risky >= self.wanted.free):
                    continue
                if row[OKEY] is not None and (row[OKEY] in keys or not self._leads_its_key(row)):
                    self._park(row)
                    continue
                keys.add(row[OKEY])
                risky += 1 if row[REPEAT] else 0
                found.append(row)
            if len(rows) < limit:
                break
        return found

    def _leads_its_key(self, row: Row) -> bool:
        if row[OKEY] is None:
            return True
        holder = self.db.execute(SQL["key_holder"], (row[QUEUE], row[OKEY])).fetchone()
        if holder is not None:
            return bool(holder[0] == row[SEQ])
        seq, parked = self.db.execute(SQL["key_head"], (row[QUEUE], row[OKEY], self.now)).fetchone()
        if seq != row[SEQ] and parked == 1:
            self.db.execute(SQL["unpark"], (seq,))
        return bool(seq == row[SEQ])

    def _park(self, row: Row) -> None:
        self.parked += self.db.execute(SQL["park"], (row[SEQ],)).rowcount

    def _take_suspect(self, row: Row) -> None:
        flow, reports, seqs = self._flow(row[QUEUE])
        if flow is None and not reports and not self.pace.limited(row[QUEUE]):
            self._take([row], Grant(1))
            return
        used = {n for (n,) in self.db.execute(SQL["slots_used"], (row[QUEUE],))}
        grant = self.pace.grant(row[QUEUE], flow, reports, len(used), self.now, 1, 0.0)
        self._keep_flow(row[QUEUE], flow, grant, seqs)
        self._take([row][: grant.n], grant, used)
        if grant.n == 0 and grant.wait is not None:
            self._look_again_in(grant.wait)

    def _take(self, rows: Sequence[Row], grant: Grant, used: Iterable[int] = ()) -> None:
        if not rows:
            return
        slotted = grant.slots is not None
        if slotted:
            self._take_slots(rows, set(used))
        keyed = [(row[QUEUE], row[OKEY], row[SEQ]) for row in rows if row[OKEY] is not None]
        if keyed:
            self.db.executemany(SQL["key_take"], keyed)
        counted = 0 if grant.probe else 1
        self.db.executemany(
            SQL["claim_update"], [(self.wanted.worker, counted, self.now, int(slotted), row[SEQ]) for row in rows]
        )
        for i, row in enumerate(rows):
            start_at = grant.starts[i] if i < len(grant.starts) else 0.0
            self._add(row, start_at, slotted, grant.probe, counted)

    def _take_slots(self, rows: Sequence[Row], used: set[int]) -> None:
        free = (n for n in range(len(used) + len(rows)) if n not in used)
        self.db.executemany(SQL["slot_take"], [(row[QUEUE], next(free), row[SEQ]) for row in rows])

    def _add(self, row: Row, start_at: float, slotted: bool, probe: bool, counted: int) -> None:
        (seq, id, token, task, queue, payload, content_type, okey, repeat, claims, charged, attempts, crashes,
         due_at, expires_at, deadline_at, seen_ok, seen_tried, seen_at, event, _, suspect) = row  # fmt: skip
        seen = None if seen_tried is None else (seen_ok, seen_tried, seen_at)
        claim = Claim(
            seq, id, token + 1, self.wanted.worker, task, queue, payload, content_type, okey, REPEATS[repeat],
            claims + counted, charged, attempts, crashes, due_at, self.now, expires_at, deadline_at, start_at,
            bool(suspect), probe, False, slotted, seen, self._health(task) if seen else None,
        )  # fmt: skip
        self.risky += 1 if repeat else 0
        self.claims.append(claim)
        if event is not None:
            self.events[event].append(claim)

    def _health(self, task: str) -> tuple[int, int]:
        if task not in self.health:
            self.health[task] = self.db.execute(SQL["health_of"], (task,)).fetchone() or (0, 0)
        return self.health[task]

    def _flow(self, queue: str) -> tuple[bytes | None, list[Report], list[int]]:
        rows = self.db.execute(SQL["journal_page"], (f"report:{queue}", 0, MAX_PARKED)).fetchall()
        reports = [msgspec.msgpack.decode(record, type=Report) for _, _, record in rows]
        return value_of(self.db, f"flow:{queue}"), reports, [row[0] for row in rows]

    def _keep_flow(self, queue: str, old: bytes | None, grant: Grant, folded: Sequence[int]) -> None:
        if grant.flow is not None and grant.flow != old:
            self.db.execute(SQL["value_put"], (f"flow:{queue}", grant.flow))
        if folded:
            self.db.executemany(SQL["journal_drop"], [(f"report:{queue}", seq) for seq in folded])

    def _look_again_in(self, seconds: float) -> None:
        if self.soonest is None or seconds < self.soonest:
            self.soonest = max(0.0, seconds)

    def _fill_events(self) -> None:
        if not self.events:
            return
        seqs = msgspec.json.encode(list(self.events)).decode()
        for seq, source, id, topic, body, content_type, headers in self.db.execute(SQL["events_of"], (seqs,)):
            pairs = tuple((name, value) for name, value in msgspec.json.decode(headers))
            for claim in self.events[seq]:
                claim.event, claim.topic, claim.headers = (source, id), topic, pairs
                claim.payload, claim.content_type = body, content_type

    def _fill_notes(self) -> None:
        again = {claim.seq: claim for claim in self.claims if claim.token > 1}
        if again:
            seqs = msgspec.json.encode(list(again)).decode()
            for seq, name, value in self.db.execute(SQL["notes_of"], (seqs,)):
                claim = again[seq]
                claim.notes = {**(claim.notes or {}), name: bytes(value)}
