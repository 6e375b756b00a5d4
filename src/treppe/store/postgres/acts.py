"""Human acts: on the job as it was seen, or not at all; audited in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from treppe.job import START_MARK, Event, Kind, State
from treppe.store.alike import ACTS, may_act
from treppe.store.postgres.database import SQL, Tx
from treppe.store.postgres.journal import append
from treppe.store.postgres.writing import Line, Live, Writes, columns, lock
from treppe.store.protocol import Seen
from treppe.store.text import can_be, clean


class Act:
    """What somebody does to jobs, and how it is said."""

    def __init__(self, tx: Tx, event: Event, by: str, note: str) -> None:
        self.event, self.by, self.note = event, clean(by), clean(note)
        self.text = f"{self.by}: {self.note}" if note else self.by
        self.writes = Writes(tx)
        self.flagged: list[int] = []
        self.revived: list[int] = []
        self.buried: list[int] = []  # they were dead, and are no more
        self.risen: list[tuple[int, int]] = []

    def change_live(self, live: Live, token: int) -> bool:
        """Carry it out on a job that is alive; False = not as it was seen, or not allowed."""
        if live.token != token or not may_act(live.state, self.event):
            return False
        line = self._line(live.seq, live.token, live.due_at)
        if self.event is Event.BURY:
            self.writes.bury(live, line, self.note or "given up by hand")
        elif self.event in (Event.CANCEL, Event.CONFIRM):
            self.writes.end(live, line, done=self.event is Event.CONFIRM)
        else:
            (self.flagged if self.event is Event.ASK_CANCEL else self.revived).append(live.seq)
            self.writes.remember(line)
        return True

    def change_dead(self, seq: int, token: int, queue: str, okey: str | None, due_at: float) -> bool:
        """Carry it out on a dead letter; False = not allowed."""
        if not may_act(State.DEAD, self.event):
            return False
        self.buried.append(seq)
        line = self._line(seq, token, due_at)
        if self.event is Event.REVIVE:
            self.risen.append((seq, token))
            self.writes.remember(line)
        else:
            self.writes.release(seq, queue, okey)
            self.writes.remember(line, final=True, done=self.event is Event.CONFIRM)
        return True

    def flush(self) -> None:
        """Write all of it."""
        for name, seqs in (("cancel_ask", self.flagged), ("revive_live", self.revived), ("dead_drop", self.buried)):
            if seqs:
                self.writes.add(name, (seqs,))
        if self.revived:
            self.writes.add("notes_restart", (self.revived, START_MARK))  # the human has answered that doubt
        if self.risen:
            self.writes.add("revive_dead", columns(self.risen))
        self.writes.flush()

    def _line(self, seq: int, token: int, due_at: float) -> Line:
        return Line(seq, token, self.event, Kind.ACT, False, due_at, None, None, self.text)


def change(tx: Tx, seen: Sequence[Seen], event: Event, by: str, note: str) -> list[Seen]:
    """Carry the act out on each job that is still as it was seen; return the others."""
    if event not in ACTS:
        return list(seen)
    jobs = {row[0]: row[1:] for row in tx.rows(SQL["jobs_seen"], ([one.id for one in seen if can_be(one.id)],))}
    alive = lock(tx, (row[0] for row in jobs.values()))
    dead: dict[int, int] = dict(
        tx.rows(SQL["dead_lock"], (sorted(row[0] for row in jobs.values() if row[0] not in alive),))
    )
    act, done, refused = Act(tx, event, by, note), list[str](), list[Seen]()
    for one in seen:
        if one.id in jobs and one.id not in done and _change_one(act, one, jobs[one.id], alive, dead):
            done.append(one.id)
        else:
            refused.append(one)
    if done:
        act.flush()
        record = {"by": act.by, "act": event.value, "ids": done, "note": act.note, "at": tx.now()}
        append(tx, "audit", [msgspec.json.encode(record)])
    return refused


def _change_one(
    act: Act, one: Seen, job: tuple[int, str, str | None, float], alive: dict[int, Live], dead: dict[int, int]
) -> bool:
    seq, queue, okey, due_at = job
    if seq in alive:
        return act.change_live(alive[seq], one.token)
    return dead.get(seq) == one.token and act.change_dead(seq, one.token, queue, okey, due_at)
