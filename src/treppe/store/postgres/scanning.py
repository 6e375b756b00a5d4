"""Which rows a claim looks at, and which of them may start now."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treppe.store.postgres.database import SQL, Row, Tx
from treppe.store.postgres.putting import REPEATS
from treppe.store.protocol import Wanted

MAX_PARKED = 500
MAX_STEP = 2000
PARK_FOR = 0.1  # seconds of one claim that go into setting aside who is behind a key
MAX_WALK = 50_000
AGED_EVERY = 10
ANY_REPEAT = len(REPEATS) - 1

Place = tuple[float, int]
Lane = tuple[str, int, frozenset[str]]
START: Place = (float("-inf"), 0)

QUICK = 0.002
QUICK_ROW = 0.00002
TIMES_SLOW = 8


class Found(NamedTuple):
    """A claimable job, locked."""

    seq: int
    okey: str | None
    repeat: int
    due_at: float
    run_at: float
    tried: bool

    @property
    def place(self) -> Place:
        """Where it stands in its lane."""
        return self.run_at, self.seq


class _Mark:
    """A lane's low-water mark."""

    __slots__ = ("place", "slow", "until")

    def __init__(self) -> None:
        self.place: Place = START
        self.slow = 0  # sweeps in a row that took long
        self.until = 0.0


class Marks:
    """Low-water marks: where a lane's claimable rows begin, when everything before is dead or not for this worker.

    Where a sweep has to walk far (rows that an open snapshot keeps from being cleaned up, a backlog of tasks nobody
    here knows), the next scans begin where it found something, and move on from there; a full sweep finds what
    appeared behind it, at most every twenty times as long as the sweep took. On a healthy store every scan is a quick
    sweep, and there are no marks.
    """

    def __init__(self) -> None:
        self._marks: dict[Lane, _Mark] = {}
        self.beyond: dict[Lane, Place] = {}  # where a lane goes on behind a long line that is being set aside

    def start(self, lane: Lane) -> Place:
        """Where to begin."""
        mark = self._marks.get(lane)
        return mark.place if mark is not None and time.perf_counter() < mark.until else START

    def left(self, lane: Lane) -> float | None:
        """Seconds until the lane's next full sweep, or None where every scan is one."""
        mark = self._marks.get(lane)
        return max(0.0, mark.until - time.perf_counter()) if mark is not None and mark.until else None

    def keep(self, lane: Lane, began: Place, first: Place, took: float, rows: int) -> None:
        """Remember where a scan found its first row; *took* says how long the server looked for it."""
        mark, place = self._marks.get(lane), (first[0], first[1] - 1)
        if began != START:
            if mark is not None:
                mark.place = max(mark.place, place)
        elif took <= QUICK + QUICK_ROW * rows:
            self._marks.pop(lane, None)
        else:
            mark = self._marks.setdefault(lane, _Mark())
            mark.slow += 1
            mark.place = place
            if mark.slow >= TIMES_SLOW:  # now and then it is only a busy machine
                mark.until = time.perf_counter() + max(1.0, 20 * took)


class Scan:
    """The rows of one claim."""

    def __init__(self, tx: Tx, wanted: Wanted, marks: Marks) -> None:
        self.wanted = wanted
        self.now = 0.0
        self.tasks = sorted(wanted.tasks)
        self.risky = 0  # jobs taken that must not be repeated
        self.parked = 0  # jobs found behind their keys
        self.sweep_in: float | None = None  # seconds until a lane is looked at again from its beginning
        self._tx, self._marks = tx, marks
        self._ahead: tuple[tuple[Any, ...], Callable[[], list[Row]]] | None = None

    def look_ahead(self, queue: str, band: int) -> None:
        """Send on its way what is most likely asked next. What it locks and nobody takes is free again in a moment."""
        if self.wanted.alone:
            ask: tuple[Any, ...] = ("suspect_look", queue, self.tasks)
        else:
            start = self._marks.start((queue, band, self.wanted.tasks))
            ask = ("due_look", queue, band, *start, self.tasks, 0, ANY_REPEAT, self.wanted.n)
        self._ahead = ask, self._tx.send(SQL[ask[0]], ask[1:])

    def look_anew(self) -> None:
        """Forget what was looked up ahead: the rows have changed since."""
        self._ahead = None

    def suspects(self, queue: str) -> list[Found]:
        """The first suspects of a queue that may run now, each of them alone."""
        return self._leading([Found(*row) for row in self._answer("suspect_look", queue, self.tasks)])

    def candidates(self, queue: str, bands: Sequence[int], want: int, served: int) -> list[Found]:
        """Jobs that may start now: by band, and a tenth of them by age alone."""
        aged = (served + want) // AGED_EVERY - served // AGED_EVERY if len(bands) > 1 else 0
        rows: list[Found] = []
        if aged:
            oldest = [row for band in bands for row in self.leaders(queue, band, aged)]
            rows = sorted(oldest, key=lambda row: (row.due_at, row.seq))[:aged]
        for band in bands:
            rows += self.leaders(queue, band, want - len(rows), skip=rows)
            if len(rows) >= want:
                break
        return rows

    def leaders(
        self, queue: str, band: int, want: int, skip: Sequence[Found] = (), least: int = 0, most: int = ANY_REPEAT
    ) -> list[Found]:
        """Up to *want* claimable jobs of a band; those behind their key are parked and looked past.

        A long line is parked in several claims. Each of them goes on beyond it, for what can be taken there.
        """
        lane = (queue, band, self.wanted.tasks)
        taken = {row.seq for row in skip}
        begin = after = self._marks.start(lane) if most == ANY_REPEAT else START
        found: list[Found] = []
        behind: list[Found] = []
        until = time.perf_counter() + PARK_FOR
        while len(found) < want:
            room = self.wanted.free - self.risky - sum(1 for row in (*skip, *found) if row.repeat)
            if len(behind) >= MAX_PARKED and time.perf_counter() >= until:  # the next claim goes on here
                beyond = self._beyond(lane, after, behind, most if room > 0 else 0, want - len(found) + len(taken))
                found += _within(room, [row for row in beyond if row.seq not in taken], want - len(found))
                self._remember_sweep(0.0)
                break
            limit = min(MAX_STEP, max(MAX_PARKED, 4 * len(behind))) if behind else want - len(found) + len(taken)
            took, rows = self._look(lane, after, (least, most if room > 0 else 0), limit)
            if after is begin and room > 0 and (least, most) == (0, ANY_REPEAT):
                self._marks.keep(lane, begin, rows[0].place if rows else (self.now, 1), took, len(rows))
            fresh = [row for row in rows if row.seq not in taken]
            leading = self._leading(fresh)
            behind += set(fresh).difference(leading)
            found += _within(room, leading, want - len(found))
            if len(rows) < limit:
                self._remember_sweep(self._marks.left(lane))
                self._marks.beyond.pop(lane, None)
                break
            after = rows[-1].place
        self.parked += len(behind)
        return found

    def _beyond(self, lane: Lane, after: Place, behind: Sequence[Found], most: int, want: int) -> list[Found]:
        """Who stands beyond the lines of these, as far as one call may look; the next one goes on from there."""
        queue, band, _ = lane
        start = max(after, self._marks.beyond.get(lane, after))
        keys = sorted({row.okey for row in behind if row.okey is not None})
        ask = (queue, band, *start, self.tasks, keys, MAX_WALK, most, want)
        answer = self._tx.rows(SQL["due_beyond"], ask)
        rows = [Found(*row[2:]) for row in answer if row[2] is not None]
        ended = answer[0][:2]
        if rows:
            self._marks.beyond[lane] = rows[0].run_at, rows[0].seq - 1
        elif ended[1] is not None:
            self._marks.beyond[lane] = ended
        return self._leading(rows)

    def _look(self, lane: Lane, after: Place, repeats: tuple[int, int], limit: int) -> tuple[float, list[Found]]:
        """The next rows of a lane, and how long the server looked for them."""
        queue, band, _ = lane
        answer = self._answer("due_look", queue, band, *after, self.tasks, *repeats, limit)
        return answer[0][0], [Found(*row[1:]) for row in answer if row[1] is not None]

    def _answer(self, *ask: Any) -> list[Row]:
        """The rows for a statement with its parameters; it may have been sent ahead."""
        ahead, self._ahead = self._ahead, None
        return ahead[1]() if ahead is not None and ahead[0] == ask else self._tx.rows(SQL[ask[0]], ask[1:])

    def _leading(self, rows: list[Found]) -> list[Found]:
        """Those without a key, and those that stand first in the line of theirs."""
        keyed = [row.seq for row in rows if row.okey is not None]
        if not keyed:
            return rows
        leads = {seq for (seq,) in self._tx.rows(SQL["key_judge"], (sorted(keyed),))}
        return [row for row in rows if row.okey is None or row.seq in leads]

    def _remember_sweep(self, left: float | None) -> None:
        if left is not None:
            self.sweep_in = left if self.sweep_in is None else min(self.sweep_in, left)


def _within(room: int, rows: Sequence[Found], want: int) -> list[Found]:
    """The first *want* of them, among which at most *room* must not be repeated."""
    chosen: list[Found] = []
    for row in rows:
        if row.repeat:
            if room <= 0:
                continue
            room -= 1
        chosen.append(row)
        if len(chosen) == want:
            break
    return chosen
