"""What one transaction writes about jobs whose rows it has locked: collected first, written in few statements.

The order of the statements is the order of the locks: jobs by their numbers, then the heads of keys by theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from treppe.job import Event, Kind, State
from treppe.store.postgres.database import SQL, Row, Tx

WAITING, BEHIND, UNCLEAR, HANDED_OVER = range(4)
STATE_OF = (State.WAITING, State.WAITING, State.UNCLEAR, State.HANDED_OVER)
LAPSED, CRASHED = 1, 2

Key = tuple[str, str]
Evidence = tuple[int | None, int | None, float | None]
NOTHING_SEEN: Evidence = (None, None, None)


class Live(NamedTuple):
    """The hot row of a job, as ``live_lock.sql`` reads it."""

    seq: int
    parked: int
    token: int
    worker: int | None
    lapsed: int
    suspect: bool
    cancel: bool
    running: bool
    crashes: int
    claims: int
    charged: int
    okey: str | None
    slotted: bool
    skip_dead: bool
    queue: str
    due_at: float
    started_at: float | None
    run_at: float
    expires_at: float
    repeat: int
    max_crashes: int

    @property
    def state(self) -> State:
        """Where the job is in its life."""
        return State.RUNNING if self.running else STATE_OF[self.parked]


class Line(NamedTuple):
    """A line of a job's history."""

    seq: int
    token: int
    event: Event
    kind: Kind
    charged: bool
    due_at: float
    started_at: float | None
    worker: int | None
    error: str = ""
    result: bytes | None = None
    detail: bytes | None = None


def lock(tx: Tx, seqs: Iterable[int]) -> dict[int, Live]:
    """The live rows of these jobs, as they are now and for the rest of the transaction."""
    wanted = sorted(set(seqs))
    return {row[0]: Live(*row) for row in tx.rows(SQL["live_lock"], (wanted,))} if wanted else {}


class Writes:
    """Changes to jobs, at most one of each job, that :meth:`flush` writes together."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._ended: list[int] = []
        self._holding: list[int] = []
        self._free: set[int] = set()
        self._freed: dict[str, set[int]] = {"slots_free": set(), "keys_free": set()}
        self._keys: set[Key] = set()
        self._others: list[tuple[str, Sequence[Any]]] = []
        self._done = 0

    def end(self, live: Live, line: Line, done: bool = False) -> None:
        """The job is over: its row, its slot and its key are free."""
        self._ended.append(live.seq)
        self._let_go(live)
        self.remember(line, final=True)
        self._done += done

    def bury(self, live: Live, line: Line, reason: str) -> None:
        """A live job becomes a dead letter. Its key stays taken unless the job lets go of it."""
        if live.skip_dead or live.okey is None:
            self._ended.append(live.seq)
            self._let_go(live)
        else:
            self._holding.append(live.seq)
            self._freed["slots_free"].add(live.seq)
        row = (live.seq, live.queue, reason, live.token, live.claims, live.charged, live.crashes)
        self._rows["dead_add"].append(row)
        self.remember(line)

    def defer(self, live: Live, line: Line, delay: float, charged: bool, uncounted: bool, seen: Evidence) -> None:
        """The job waits again; it keeps its place in its key's line."""
        self._rows["live_defer"].append((live.seq, delay, int(charged), live.crashes, int(uncounted), *seen))
        self._freed["slots_free"].add(live.seq)
        self.remember(line)

    def put_aside(self, live: Live, line: Line, parked: int, delay: float = 0.0, seen: Evidence = NOTHING_SEEN) -> None:
        """Unclear, or handed over: only what is handed over keeps its slot."""
        slotted = live.slotted and parked == HANDED_OVER
        self._rows["live_aside"].append((live.seq, parked, delay, live.crashes, slotted, *seen))
        if not slotted:
            self._freed["slots_free"].add(live.seq)
        self.remember(line)

    def retake_slot(self, live: Live) -> None:
        """A job that lost its slot counts for the limit of its queue again."""
        self._rows["slots_retake"].append((live.seq, live.queue))

    def take_back(self, live: Live, line: Line, parked: int, mark: int, suspect: bool) -> None:
        """The worker is lost; while nobody claims the job, it may still settle."""
        self._rows["live_lapse"].append((live.seq, parked, live.crashes, mark, suspect))
        self._freed["slots_free"].add(live.seq)
        self.remember(line)

    def release(self, seq: int, queue: str, okey: str | None) -> None:
        """A job that has no live row any more lets go of its key."""
        if okey is not None:
            self._freed["keys_free"].add(seq)
            self._keys.add((queue, okey))

    def remember(self, line: Line, final: bool = False, done: bool = False) -> None:
        """A line of history; the *final* one says how long the job's id stays taken."""
        row = (*line[:2], line.event.value, line.kind.value, *line[4:], final)
        self._rows["attempt_add"].append(row)
        self._done += done

    def add(self, name: str, params: Sequence[Any]) -> None:
        """Another statement, to be sent along."""
        self._others.append((name, params))

    def flush(self) -> None:
        """Write all of it."""
        with self._tx.pipeline():
            self._send("live_delete", sorted(self._ended))  # before it is judged who leads a key
            if self._holding:
                self._send("keys_hold", self._holding)
                self._send("live_delete", self._holding)
            for name, seqs in self._freed.items():
                self._send(name, sorted(seqs))
            for name, rows in self._rows.items():
                self._tx.send(SQL[name], columns(sorted(rows, key=lambda row: row[0])))
            if self._done:
                self._tx.send(SQL["count_add"], ("done", self._done))
            for name, params in self._others:
                self._tx.send(SQL[name], params)
        promote(self._tx, self._keys)

    def _let_go(self, live: Live) -> None:
        self._freed["slots_free"].add(live.seq)
        self.release(live.seq, live.queue, live.okey)

    def _send(self, name: str, seqs: list[int]) -> None:
        if seqs:
            self._tx.send(SQL[name], (seqs,))


def promote(tx: Tx, keys: Iterable[Key]) -> int:
    """The first of the line of each key that nobody holds may be claimed; how many were woken."""
    left, woken = sorted(set(keys)), 0
    while left:
        rows = tx.rows(SQL["keys_promote"], columns(left))
        woken += sum(row[3] for row in rows)
        left = missed(rows)
    return woken


def missed(rows: Iterable[Row]) -> list[Key]:
    """The keys of an answer of ``keys_promote.sql`` that have to be looked at again."""
    return sorted((queue, okey) for queue, okey, is_there, _ in rows if not is_there)


def columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows as arrays, one of each column."""
    return [list(column) for column in zip(*rows, strict=True)]
