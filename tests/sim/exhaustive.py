"""A small world searched whole: two workers, two jobs of one key, every order of calls up to a depth.

A model of a few lines says after each call what must have come of it; the real SQLite store must agree. The model goes
by the state machine's table, and knows nothing of tables and rows. Every branch is a savepoint, so going back is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from treppe.errors import IllegalTransition
from treppe.job import Claim, Event, Kind, NewJob, Repeat, Settlement, State, When, advance
from treppe.policy.pace import Pacer
from treppe.settle import AFTER_LAPSE
from treppe.store.protocol import Seen, Wanted
from treppe.store.sqlite import SQLiteStore
from treppe.testing.clock import ManualClock

JOBS = ("one", "two")
WORKERS = ("anna", "bert")
ENDS = (Event.FINISH, Event.DEFER, Event.DOUBT, Event.BURY, Event.HAND_OVER, Event.CONFIRM)
ACTS = (Event.CANCEL, Event.ASK_CANCEL, Event.REVIVE, Event.CONFIRM, Event.BURY)
KINDS = {Event.FINISH: Kind.OK, Event.HAND_OVER: Kind.OK, Event.CONFIRM: Kind.ACT, Event.DOUBT: Kind.UNCLEAR}
FREE = Pacer({})


class Row(NamedTuple):
    """A job in the model. ``worker`` is who has or had the last claim."""

    repeat: Repeat
    state: State = State.WAITING
    token: int = 0
    worker: int = 0
    lapsed: int = 0  # 1 = upkeep took it back, 2 = and counted a crash
    suspect: bool = False
    cancel: bool = False
    crashes: int = 0


class Model(NamedTuple):
    """All of it: hashable, so that a state that was seen is not searched again."""

    rows: tuple[Row, Row]
    turn: int | None = None  # whose turn it is in the line of the key
    ids: tuple[int, int] = (10, 20)  # of the workers; a lost lease makes a new one
    hands: frozenset[tuple[int, int, int]] = frozenset()  # claims that somebody may settle: job, token, worker

    def with_row(self, n: int, **changes: Any) -> Model:
        rows = list(self.rows)
        rows[n] = rows[n]._replace(**changes)
        model = self._replace(rows=(rows[0], rows[1]))
        return model._release(n) if rows[n].state in (State.DONE, State.CANCELLED) else model._hold(n)

    def _release(self, n: int) -> Model:
        return self._replace(turn=None) if self.turn == n else self

    def _hold(self, n: int) -> Model:
        """A head that dies before it ever ran keeps its turn."""
        dead = self.rows[n].state is State.DEAD and self.turn is None and self.head() in (n, None)
        return self._replace(turn=n) if dead else self

    def head(self) -> int | None:
        """The first of the line."""
        if self.turn is not None:
            return self.turn
        ended = (State.DONE, State.CANCELLED, State.DEAD)
        return next((n for n, row in enumerate(self.rows) if row.state not in ended), None)


class Disagreement(AssertionError):
    """The store did something else than the model; the text tells the way there."""


Step = tuple[str, Callable[[], tuple[Model, object, object]]]


class Search:
    """Depth first, over savepoints of one connection."""

    def __init__(self, folder: Path, repeats: tuple[Repeat, Repeat]) -> None:
        self.clock = ManualClock()
        self.store = SQLiteStore(folder / "jobs.db", clock=self.clock, durable=False)
        self.store.migrate()
        self._db = self.store._database._connect()
        self._db.execute("BEGIN")
        for name in ("write", "write_apart", "read"):
            setattr(self.store._database, name, lambda work: work(self._db))
        self.store._database.checkpoint = lambda: None  # type: ignore[method-assign]
        self.store._claimer._marks.keep = lambda *scan: None  # type: ignore[method-assign] - they go by real time
        self.claims: dict[tuple[int, int, int], Claim] = {}
        self.calls = self.states = 0
        self._seen: dict[Model, int] = {}
        self._way: list[str] = []
        jobs = [
            NewJob(id, "task", "q", key="k", repeat=repeat, crashes=2) for id, repeat in zip(JOBS, repeats, strict=True)
        ]
        self.seqs = [placed.seq for placed in self.store.put(jobs).jobs]
        self.start = Model((Row(repeats[0]), Row(repeats[1])))
        for worker in self.start.ids:
            self.store.enlist(worker, str(worker), 1e9)

    def close(self) -> None:
        self._db.execute("ROLLBACK")
        self._db.close()
        self.store.close()

    def run(self, depth: int) -> None:
        """Every way of *depth* calls; raises Disagreement."""
        self._explore(self.start, depth)

    def _explore(self, model: Model, depth: int) -> None:
        if self._seen.get(model, 0) >= depth:
            return
        self.states += model not in self._seen
        self._seen[model] = depth
        for name, call in self._steps(model):
            self._db.execute(f"SAVEPOINT d{depth}")
            self._way.append(name)
            after, expected, got = call()
            self.calls += 1
            if expected != got:
                self._disagree(f"expected {expected}, got {got}")
            self._compare(after)
            self._explore(after, depth - 1)
            self._way.pop()
            self._db.execute(f"ROLLBACK TO d{depth}")
            self._db.execute(f"RELEASE d{depth}")

    def _steps(self, model: Model) -> Iterator[Step]:
        for w, name in enumerate(WORKERS):
            yield f"{name} claims", lambda w=w: self._claim(model, w, alone=False)  # type: ignore[misc]
            yield f"{name} claims a suspect", lambda w=w: self._claim(model, w, alone=True)  # type: ignore[misc]
            yield f"{name}'s lease ends", lambda w=w: self._lapse(model, w)  # type: ignore[misc]
        for hand in sorted(model.hands):
            for event in ENDS:
                told = f"worker {hand[2]} settles {JOBS[hand[0]]} token {hand[1]}: {event}"
                yield told, lambda hand=hand, event=event: self._settle(model, hand, event)  # type: ignore[misc]
        for n, row in enumerate(model.rows):
            for event in ACTS:
                for token in {row.token, max(0, row.token - 1)}:
                    told = f"a human who saw {JOBS[n]} with token {token}: {event}"
                    yield told, lambda n=n, token=token, event=event: self._act(model, n, token, event)  # type: ignore[misc]

    # Each step is done by the model and by the store: the model after it, what was expected, what came

    def _claim(self, model: Model, w: int, alone: bool) -> tuple[Model, object, object]:
        worker, head = model.ids[w], model.head()
        got = self.store.claim(Wanted(worker, 2, 2, frozenset({"task"}), None, alone), FREE).claims
        expected: list[tuple[int, int]] = []
        if head is not None and model.rows[head].state is State.WAITING and model.rows[head].suspect is alone:
            row = model.rows[head]
            expected.append((self.seqs[head], row.token + 1))
            hand = head, row.token + 1, worker
            model = model.with_row(head, state=State.RUNNING, token=row.token + 1, worker=worker, lapsed=0)
            model = model._replace(turn=head, hands=model.hands | {hand})
            self.claims.update((hand, claim) for claim in got)
        return model, expected, [(claim.seq, claim.token) for claim in got]

    def _lapse(self, model: Model, w: int) -> tuple[Model, object, object]:
        old = model.ids[w]
        ids = list(model.ids)
        ids[w] = old + 1
        self.store.retire(old)
        lapsed = self.store.upkeep(AFTER_LAPSE).lapsed
        self.store.enlist(ids[w], str(ids[w]), 1e9)
        model = model._replace(ids=(ids[0], ids[1]))
        running = [n for n, row in enumerate(model.rows) if row.state is State.RUNNING and row.worker == old]
        for n in running:
            model = self._lapsed(model, n)
        return model, len(running), lapsed

    def _lapsed(self, model: Model, n: int) -> Model:
        row = model.rows[n]
        crashes, lapsed = row.crashes + row.suspect, 1 + row.suspect
        if row.repeat is not Repeat.SAFE:
            return model.with_row(n, state=State.UNCLEAR, lapsed=lapsed, suspect=False, crashes=crashes)
        if row.cancel:
            return model.with_row(n, state=State.CANCELLED)
        if crashes >= 2:
            return model.with_row(n, state=State.DEAD)
        return model.with_row(n, state=State.WAITING, lapsed=lapsed, suspect=True, crashes=crashes)

    def _settle(self, model: Model, hand: tuple[int, int, int], event: Event) -> tuple[Model, object, object]:
        n, token, worker = hand
        row = model.rows[n]
        one = Settlement(self.claims[hand], event, KINDS.get(event, Kind.FAILED), counts=False)
        refused = bool(self.store.settle([one]))
        target = self._target(row, token, worker, event)
        if target is None:
            return model, True, refused
        crashes = row.crashes - (row.lapsed == 2)
        if target is State.WAITING and row.cancel:
            target = State.CANCELLED
        gone = {} if target is not State.WAITING else {"worker": 0}
        after = model.with_row(n, state=target, lapsed=0, suspect=False, crashes=crashes, **gone)
        return after, False, refused

    def _target(self, row: Row, token: int, worker: int, event: Event) -> State | None:
        if (row.token, row.worker) != (token, worker) or row.state in (State.DONE, State.CANCELLED, State.DEAD):
            return None
        living = row.state in (State.RUNNING, State.HANDED_OVER) or event is Event.CONFIRM
        try:
            return advance(row.state, event, When.LATE if row.lapsed else When.ALWAYS) if living or row.lapsed else None
        except IllegalTransition:
            return None

    def _act(self, model: Model, n: int, token: int, event: Event) -> tuple[Model, object, object]:
        row = model.rows[n]
        refused = bool(self.store.change([Seen(JOBS[n], token)], event, "anna", "by hand"))
        running = row.state is State.RUNNING and event is not Event.ASK_CANCEL
        try:
            target = None if token != row.token or running else advance(row.state, event)
        except IllegalTransition:
            target = None
        if target is None:
            return model, True, refused
        if event is Event.ASK_CANCEL:
            return model.with_row(n, cancel=True), False, refused
        fresh = Row(row.repeat)._replace(state=target, token=row.token)
        return model.with_row(n, **fresh._asdict()), False, refused

    def _compare(self, model: Model) -> None:
        for n, row in enumerate(model.rows):
            job = self.store.get(JOBS[n])
            assert job is not None
            if (job.state, job.token) != (row.state, row.token):
                self._disagree(f"{job.id} is {job.state} (token {job.token}), expected {row.state} (token {row.token})")
            if not row.state.final and job.crashes != row.crashes:
                self._disagree(f"{job.id} has {job.crashes} crashes, expected {row.crashes}")

    def _disagree(self, what: str) -> None:
        way = "\n".join(f"  {n}. {step}" for n, step in enumerate(self._way, 1))
        raise Disagreement(f"{what}, after\n{way}")
