"""A queue as one writes it in an afternoon: pop a job, keep what has to be tried again in memory.

It gets right what the happy path needs, and it is here to lose jobs: a judge that does not see that is blind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from treppe.job import Claim, Event, Job, NewEvent, NewJob, Placed, Settlement, State
from treppe.store.protocol import Backlog, Can, Claimed, Filter, Pace, Page, Put, QueueBacklog, Seen, Upkept, Wanted

ENDS = {Event.FINISH: State.DONE, Event.CONFIRM: State.DONE, Event.CANCEL: State.CANCELLED, Event.BURY: State.DEAD}


class Server:
    """What survives the death of a process: one list, and the ends of jobs."""

    def __init__(self) -> None:
        self.seqs: dict[str, int] = {}
        self.jobs: dict[str, NewJob] = {}
        self.waiting: list[str] = []
        self.ended: dict[str, State] = {}
        self.tokens: dict[str, int] = {}
        self.timers: list[NaiveStore] = []


class NaiveStore:
    """The queue as one process sees it. Satisfies as much of the store protocol as a world asks for."""

    def __init__(self, server: Server, clock: Callable[[], float]) -> None:
        self.server, self.now = server, clock
        self.lease = 10.0
        self.can = Can(False, False, True, False, "none")
        self.journal = SimpleNamespace(
            get=lambda name: None, swap=lambda name, old, new: False, scan=lambda prefix: {}, page=lambda *about: []
        )
        self._again: list[tuple[float, str]] = []  # what this process wants to try once more, and when
        server.timers.append(self)

    def put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put:
        server, placed = self.server, []
        for job in jobs:
            known = job.id in server.seqs
            seq = server.seqs.setdefault(job.id, len(server.seqs) + 1)
            differs = known and server.jobs[job.id].payload != job.payload
            placed.append(Placed(job.id, seq, known, "content" if differs else ""))
            if not known:
                server.jobs[job.id] = job
                server.waiting.append(job.id)
        return Put(tuple(placed), tuple(Placed(event.id, 1) for event in events))

    def claim(self, wanted: Wanted, pace: Pace, settlements: Sequence[Settlement] = ()) -> Claimed:
        refused = self.settle(settlements)
        now, waiting = self.now(), self.server.waiting
        waiting += [id for at, id in self._again if at <= now]
        self._again = [(at, id) for at, id in self._again if at > now]
        taken = [waiting.pop(0) for _ in range(min(wanted.n, len(waiting)))]
        return Claimed(tuple(self._claimed(id, wanted.worker) for id in taken), refused)

    def _claimed(self, id: str, worker: int) -> Claim:
        server, now, job = self.server, self.now(), self.server.jobs[id]
        server.tokens[id] = server.tokens.get(id, 0) + 1
        return Claim(
            server.seqs[id], id, server.tokens[id], worker, job.task, job.queue, job.payload, "", None, job.repeat,
            server.tokens[id], 0, job.attempts, 0, now, now, now + job.expires, None,
        )  # fmt: skip

    def settle(self, settlements: Sequence[Settlement]) -> tuple[Settlement, ...]:
        for one in settlements:
            if one.event in ENDS:
                self.server.ended[one.claim.id] = ENDS[one.event]
            else:
                self._again.append((self.now() + one.delay, one.claim.id))
        return ()

    def get(self, id: str) -> Job | None:
        state = self.server.ended.get(id)
        if state is None and id in [*self.server.waiting, *(id for one in self.server.timers for _, id in one._again)]:
            state = State.WAITING
        return None if state is None else self._job(id, state)

    def _job(self, id: str, state: State) -> Job:
        job, token = self.server.jobs[id], self.server.tokens.get(id, 0)
        return Job(
            self.server.seqs[id], id, job.task, job.queue, state, None, 0, job.repeat, token, token, 0, 5, 0, 0.0, 0.0,
            None, None, None,
        )  # fmt: skip

    def find(self, wanted: Filter, after: int | None = None, n: int = 50) -> Page:
        found = [job for id in self.server.jobs if (job := self.get(id)) is not None]
        return Page(tuple(job for job in found if not wanted.states or job.state in wanted.states))

    def backlog(self) -> Backlog:
        left = len(self.server.waiting) + sum(len(one._again) for one in self.server.timers)
        done = sum(state is State.DONE for state in self.server.ended.values())
        return Backlog(self.now(), (QueueBacklog("all", waiting=left),), len(self.server.jobs), done)

    def change(self, seen: Sequence[Seen], event: Event, by: str, note: str = "") -> tuple[Seen, ...]:
        return tuple(seen)

    def upkeep(self, after_lapse: Any) -> Upkept:
        return Upkept()

    def held(self, worker: int) -> tuple[Claim, ...]:
        return ()

    def note(self, claim: Claim, name: str, value: bytes | None) -> bool:
        return True

    def enlist(self, worker: int, name: str, lease: float) -> None:
        """It knows no leases."""

    def renew(self, worker: int, lease: float) -> bool:
        return True

    def retire(self, worker: int) -> None:
        """It knows no leases."""

    def close(self) -> None:
        """The process is gone, and with it what it wanted to try again."""
        self._again.clear()


class NaivePlace:
    """Where such queues live."""

    can_within = False

    def __init__(self) -> None:
        self.server = Server()

    def fresh(self) -> None:
        self.server = Server()

    def open(self, clock: Callable[[], float]) -> NaiveStore:
        return NaiveStore(self.server, clock)

    @contextmanager
    def connect(self) -> Iterator[Any]:
        raise NotImplementedError("a list has no transactions")
        yield

    def close(self) -> None:
        """There is nothing to let go of."""
