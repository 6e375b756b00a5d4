"""Claiming: which jobs a worker gets. One transaction, whatever it finds on the way.

Queues are served round robin; inside a queue the higher band goes first, but every tenth claim goes by age
alone, so nothing starves. A paced queue is asked for its grant before it is scanned, and once more with the
number of jobs that are really there, so nothing is granted that is not taken. Only one worker at a time asks
for the grant of a queue; the others pass by. Queues without a pace know no such gate.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from treppe.job import Grant, Settlement
from treppe.store.postgres.claims import Claims
from treppe.store.postgres.database import SQL, Database, Row, Tx
from treppe.store.postgres.pacing import AHEAD, Known, ask, free_slots, keep_flow, known
from treppe.store.postgres.putting import REPEATS
from treppe.store.postgres.scanning import QUICK, TIMES_SLOW, Found, Marks, Scan
from treppe.store.postgres.settling import Settling
from treppe.store.postgres.usual import Usual, is_common
from treppe.store.protocol import Claimed, Pace, Wanted

MAX_PACED = 100  # so many paced queues are asked for in one claim
PROBES = 10  # so many are looked at for one that never failed: it tells more about the other side
BUSY_AGAIN = 0.01  # seconds; another worker is asking for the grant of a queue
SOON = 0.01  # seconds until everything is looked at, when one lane was served before
SUSPECTS = -1  # the band that stands for them
PEEK = SQL["claim_heads"].replace(" FOR KEY SHARE", "")  # who only looks writes nothing


class Claimer:
    """Remembers, per process, whose turn it is."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last_queue = ""
        self._marks = Marks()
        self._usual = Usual(database, self._marks)
        self._heads = Heads()
        self._served: dict[str, int] = defaultdict(int)
        self._idle = False
        self._only: tuple[str, int] | None = None  # where the last jobs came from, if it was one lane
        self._common = False  # and none of them needed a second look

    def claim(
        self, wanted: Wanted, pace: Pace, settlements: Sequence[Settlement] = (), *, told: bool = False
    ) -> Claimed:
        """Settle, then take what may be taken for *wanted*; see :meth:`treppe.store.protocol.Store.claim`.

        *told* = something is known to have come.
        """
        if self._idle and not settlements:
            claimed = (self._take_at_once(wanted) if told else None) or self._peek(wanted)
            if claimed is not None:
                return claimed
        if self._usual.fits(wanted, settlements):
            claimed = self._claim_usually(wanted, pace, settlements)
        else:
            claimed = self._database.write(lambda tx: self._claim(tx, wanted, pace, partial(Settling, tx, settlements)))
        self._idle = not claimed.claims
        return claimed

    def _claim_usually(self, wanted: Wanted, pace: Pace, settlements: Sequence[Settlement]) -> Claimed:
        claims, settling = self._usual.take(wanted, settlements)
        if len(claims) == wanted.n and settling.is_over:
            return Claimed(claims)
        left = msgspec.structs.replace(wanted, n=wanted.n - len(claims))
        more = self._database.write(lambda tx: self._claim(tx, left, pace, partial(settling.go_on, tx)))
        return msgspec.structs.replace(more, claims=claims + more.claims)

    def _take_at_once(self, wanted: Wanted) -> Claimed | None:
        """What just came is most likely where the last jobs were. What else there is has a moment's time."""
        if not self._common or wanted.alone:
            return None
        self._usual.lane = self._only
        claims, _ = self._usual.take(wanted, ())
        self._idle = not claims
        return Claimed(claims, next_in=SOON) if claims else None

    def _peek(self, wanted: Wanted) -> Claimed | None:
        """Where nothing came last time one statement tells whether anything is due; None = it may be."""
        rows = self._database.once(PEEK, (wanted.worker, sorted(wanted.tasks), True))
        if not rows:
            return Claimed()
        agenda = Agenda(wanted, rows[0][0], _heads(rows))
        if agenda.suspects_wait() if wanted.alone else agenda.due:
            return None
        return Claimed((), (), agenda.soonest, agenda.suspects_wait())

    def _claim(self, tx: Tx, wanted: Wanted, pace: Pace, settle: Callable[[], Settling]) -> Claimed:
        look = self._heads.are_old()
        ask = (wanted.worker, sorted(wanted.tasks), look)
        scan = Scan(tx, wanted, self._marks)
        with tx.pipeline():
            settling = settle()
            heads = tx.send(SQL["claim_heads"], ask)
            if self._only is not None:
                scan.look_ahead(*self._only)
        refused, rows = tuple(settling.end()), heads()
        if settling.wrote_more:
            rows = tx.rows(SQL["claim_heads"], ask)
            scan.look_anew()
        if not rows:
            return Claimed((), refused)
        agenda = Agenda(wanted, rows[0][0], self._heads.of(rows, look))
        turn = _Turn(tx, wanted, pace, agenda, scan)
        if wanted.alone:
            turn.take_one_suspect()
        else:
            self._serve_queues(turn, agenda.due)
            agenda.look_again_in(self._heads.left())
        if turn.claims:
            self._only, self._common = turn.only(), turn.is_common()
        self._usual.lane = self._only if turn.room() == 0 and turn.is_common() else None
        agenda.look_again_in(turn.scan.sweep_in)
        return Claimed(turn.claims.filled(), refused, agenda.soonest, agenda.suspects_wait())

    def _serve_queues(self, turn: _Turn, due: dict[str, list[int]]) -> None:
        queues = self._round_robin(sorted(due))
        share = -(-turn.wanted.n // max(1, len(queues)))
        empty: set[str] = set()
        for round_share in (share, turn.wanted.n):
            for queue in queues:
                if turn.room() <= 0:
                    return
                want = 0 if queue in empty else min(round_share, turn.room())
                got = turn.take(queue, due[queue], want, self._served[queue]) if want else 0
                if got < want:
                    empty.add(queue)
                self._served[queue] += got
                if got or turn.asked == MAX_PACED:
                    self._last_queue = queue

    def _round_robin(self, queues: list[str]) -> list[str]:
        after = [queue for queue in queues if queue > self._last_queue]
        return after + [queue for queue in queues if queue <= self._last_queue]


class Heads:
    """Where there is work. Looked for with every claim as long as that is quick, else remembered for a while."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._slow = 0
        self._until = 0.0

    def are_old(self) -> bool:
        """Whether to look again."""
        return time.perf_counter() >= self._until

    def left(self) -> float | None:
        """Seconds until then, or None where every claim looks."""
        return max(0.0, self._until - time.perf_counter()) if self._until else None

    def of(self, answer: Sequence[Row], looked: bool) -> list[Row]:
        """The heads of an answer, with those remembered where it did not look."""
        rows = _heads(answer)
        if not looked:
            return rows + self._rows
        took = answer[0][1]
        self._slow = self._slow + 1 if took > QUICK else 0
        self._rows = [row for row in rows if row[1] != SUSPECTS]
        self._until = time.perf_counter() + max(1.0, 20 * took) if self._slow >= TIMES_SLOW else 0.0
        return rows


class Agenda:
    """What is due, where, by the heads of ``claim_heads.sql``; and when to look again."""

    def __init__(self, wanted: Wanted, now: float, heads: Sequence[Row]) -> None:
        self.now = now
        self.due: dict[str, list[int]] = defaultdict(list)  # the bands with due jobs, by queue
        self.watched: set[str] = set()  # queues of whose pace something is known
        self.suspects: dict[str, int] = {}  # how many may run now, by queue
        self.soonest: float | None = None
        for queue, band, head, watched, waiting in heads:
            if wanted.queues is None or queue in wanted.queues:
                if watched:
                    self.watched.add(queue)
                if head > now:
                    self.look_again_in(head - now)
                elif band == SUSPECTS:
                    self.suspects[queue] = waiting
                else:
                    self.due[queue].append(band)

    def look_again_in(self, seconds: float | None) -> None:
        if seconds is not None and (self.soonest is None or seconds < self.soonest):
            self.soonest = max(0.0, seconds)

    def suspects_wait(self) -> bool:
        """Whether a suspect could be claimed by who has nothing beside it."""
        return any(self.suspects.values())


def _heads(answer: Sequence[Row]) -> list[Row]:
    return [row[2:] for row in answer if row[2] is not None]


class _Turn:
    """One claim in one transaction."""

    def __init__(self, tx: Tx, wanted: Wanted, pace: Pace, agenda: Agenda, scan: Scan) -> None:
        self.tx, self.wanted, self.pace, self.agenda, self.scan = tx, wanted, pace, agenda, scan
        scan.now = agenda.now
        self.claims = Claims(tx, wanted.worker)
        self.asked = 0  # paced queues
        self._closed: set[str] = set()  # paced queues that gave all they may

    def room(self) -> int:
        return self.wanted.n - len(self.claims)

    def only(self) -> tuple[str, int] | None:
        """The one lane there was work in, if it has no pace."""
        if self.wanted.alone:
            return self.claims.all[0].queue, SUSPECTS
        lanes = [(queue, band) for queue, bands in self.agenda.due.items() for band in bands]
        return lanes[0] if len(lanes) == 1 and not self.asked else None

    def is_common(self) -> bool:
        """Whether nothing that was taken from that lane needs a second look."""
        in_one_lane = not self.wanted.alone and not self.scan.parked and self.only() is not None
        return in_one_lane and all(map(is_common, self.claims.all))

    def take(self, queue: str, bands: list[int], want: int, served: int) -> int:
        """Take up to *want* jobs of one queue, as its pace and its order keys allow."""
        if queue in self._closed:
            return 0
        if not self._is_paced(queue):
            return self._take(queue, self.scan.candidates(queue, sorted(bands), want, served))
        known = self._known(queue)
        return self._take_paced(known, sorted(bands), want, served) if known else 0

    def take_one_suspect(self) -> None:
        """One job that runs alone, of the first queue that lets one go."""
        for queue in sorted(self.agenda.suspects):
            rows = self.scan.suspects(queue)[:1]
            if rows and self._take_suspect(queue, rows):
                self.agenda.suspects[queue] -= 1
                return

    def _is_paced(self, queue: str) -> bool:
        return queue in self.agenda.watched or self.pace.limited(queue)

    def _known(self, queue: str) -> Known | None:
        if self.asked == MAX_PACED:
            self.agenda.look_again_in(0.0)
            return None
        self.asked += 1
        found = known(self.tx, queue)
        if found is None:
            self._closed.add(queue)
            self.agenda.look_again_in(BUSY_AGAIN)
        return found

    def _take_paced(self, known: Known, bands: list[int], want: int, served: int) -> int:
        grant = ask(self.pace, known, want, AHEAD)
        rows = self._granted(known.queue, bands, grant, served) if grant.n else []
        risky = any(row.repeat for row in rows)
        if risky or len(rows) != grant.n:  # keep only the flow of what is really taken
            grant = ask(self.pace, known, len(rows), 0.0 if risky else AHEAD)
            rows = rows[: grant.n]
        if len(rows) < want:
            self._closed.add(known.queue)
        return self._take_granted(known, rows, grant)

    def _take_suspect(self, queue: str, rows: list[Found]) -> int:
        if not self._is_paced(queue):
            return self._take(queue, rows)
        known = self._known(queue)
        if known is None:
            return 0
        grant = ask(self.pace, known, 1, 0.0)
        return self._take_granted(known, rows[: grant.n], grant)

    def _granted(self, queue: str, bands: list[int], grant: Grant, served: int) -> list[Found]:
        if not grant.probe:
            return self.scan.candidates(queue, bands, grant.n, served)
        for repeat in range(len(REPEATS)):  # a probe is a job that may be repeated, if there is one
            for band in bands:
                if rows := self.scan.leaders(queue, band, PROBES, least=repeat, most=repeat):
                    return sorted(rows, key=lambda row: row.tried)[:1]
        return []

    def _take_granted(self, known: Known, rows: list[Found], grant: Grant) -> int:
        keep_flow(self.tx, known, grant)
        self.agenda.look_again_in(grant.wait)
        return self._take(known.queue, rows, grant, known.slots)

    def _take(self, queue: str, rows: list[Found], grant: Grant | None = None, used: set[int] | None = None) -> int:
        if not rows:
            return 0
        grant = grant or Grant(len(rows))
        slotted = grant.slots is not None
        seqs = [row.seq for row in rows]
        keyed = [row.seq for row in rows if row.okey is not None]
        take = SQL["claim_take"], (seqs, self.wanted.worker, 0 if grant.probe else 1, slotted, keyed)
        if slotted:
            with self.tx.pipeline():
                self.tx.send(SQL["slot_take"], (queue, free_slots(used or set(), len(rows)), seqs))
                answer = self.tx.send(*take)
        else:
            answer = self.tx.send(*take)
        taken = {row[0]: row for row in answer()}
        if slotted and len(taken) < len(rows):  # another transaction was first to take a key
            self.tx.run(SQL["slots_free"], ([seq for seq in seqs if seq not in taken],))
        for i, row in enumerate(row for row in rows if row.seq in taken):
            start_at = grant.starts[i] if i < len(grant.starts) else 0.0
            self.scan.risky += 1 if row.repeat else 0
            self.claims.add(taken[row.seq], self.agenda.now, start_at, grant.probe)
        return len(taken)
