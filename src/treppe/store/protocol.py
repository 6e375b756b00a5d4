"""The port: everything Treppe asks of a store, and nothing else.

Calls are synchronous and carry batches; they may come from any thread. Each call is one transaction
and bounded in size. Times are Unix seconds by the store's own clock; callers send durations only.
A store translates its driver's errors into :mod:`treppe.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from treppe.job import Claim, Event, Grant, Job, NewEvent, NewJob, Placed, Repeat, Report, Settlement, State
from treppe.store.bell import Bell

MAX_BATCH = 500
"""No call writes more rows than this but ``put``, which stores all of it or nothing: whoever puts bounds it."""


class Can(msgspec.Struct, frozen=True):
    """What a store keeps, as code: ``check`` and ``intake`` refuse at once what it cannot."""

    within: bool  # enqueue inside the caller's transaction
    many_machines: bool  # workers on several machines
    find: bool  # lists and filters
    survives_power_loss: bool
    durability: str  # one sentence for people
    puts_at_once: bool = False  # `try_put` may have an answer


class Put(msgspec.Struct, frozen=True):
    """The answer of :meth:`Store.put`, in the order of what was given.

    A job of an event that turned out to be a duplicate is not placed anew; it is answered as one.
    """

    jobs: tuple[Placed, ...]
    events: tuple[Placed, ...] = ()


class Wanted(msgspec.Struct, frozen=True):
    """What a worker asks for: ``n`` jobs, of which at most ``free`` must not be repeated.

    ``n`` beyond ``free`` is prefetch. ``tasks`` are the handlers it knows; ``queues`` limits where it looks
    (``None`` = everywhere, served round robin). ``alone`` asks for one suspect and nothing else.
    """

    worker: int
    n: int
    free: int
    tasks: frozenset[str]
    queues: tuple[str, ...] | None = None
    alone: bool = False


class Claimed(msgspec.Struct, frozen=True):
    """What a claim brought. ``refused`` are the settlements of the same call that no longer counted."""

    claims: tuple[Claim, ...] = ()
    refused: tuple[Settlement, ...] = ()
    next_in: float | None = None  # seconds to the next job that becomes due or may start; None = none known
    suspects: bool = False  # suspects wait for a worker with nothing beside them


class Pace(Protocol):
    """The pure pace policy, handed in by whoever claims."""

    def limited(self, queue: str) -> bool:
        """True when the queue has a rate or a concurrency of its own."""

    def grant(
        self,
        queue: str,
        flow: bytes | None,
        reports: Sequence[Report],
        running: int,
        now: float,
        want: int,
        ahead: float,
    ) -> Grant:
        """Fold the reports into the flow, then say how many of *want* jobs may start.

        Pure: a store calls it again with the number of jobs it really found and keeps only the last flow.
        ``running`` counts the slots in use; start times may lie up to ``ahead`` seconds in the future.
        """


class Lapsed(msgspec.Struct, frozen=True):
    """What is known of a job whose worker's lease ran out."""

    repeat: Repeat
    suspect: bool
    cancelling: bool
    crashes: int
    max_crashes: int
    looking: bool = False


class Lapse(msgspec.Struct, frozen=True):
    """What a lapse does: the event for the state machine, and whether it counts as a crash."""

    event: Event
    crashed: bool
    error: str = ""


AfterLapse = Callable[[Lapsed], Lapse]


class Upkept(msgspec.Struct, frozen=True):
    """What one round of upkeep did; ``more`` says that another round has work.

    ``look_in`` is in how many seconds the next round is due: no later than the next lease may run out, if the store
    knows when that is.
    """

    lapsed: int = 0
    expired: int = 0
    promoted: int = 0
    forgotten: int = 0
    more: bool = False
    look_in: float = 1.0


class QueueBacklog(msgspec.Struct, frozen=True):
    """The figures of one queue. ``oldest_age`` is of due jobs that wait, in seconds."""

    queue: str
    waiting: int = 0  # due, and not running
    scheduled: int = 0  # due later
    retrying: int = 0  # were due, wait for their next attempt
    behind: int = 0  # due, behind their order key
    running: int = 0
    unclear: int = 0
    handed_over: int = 0
    dead: int = 0
    oldest_age: float | None = None


class Backlog(msgspec.Struct, frozen=True):
    """How much there is, exactly, at ``at``."""

    at: float
    queues: tuple[QueueBacklog, ...] = ()
    accepted: int = 0  # jobs ever put
    done: int = 0  # jobs whose effect is known, ever
    due_tasks: dict[str, int] = {}  # due jobs that wait, by task: a task that no worker knows stands out here

    @property
    def open(self) -> int:
        """The one number: jobs that are accepted and not yet at their end (dead ones not counted)."""
        return sum(
            q.waiting + q.scheduled + q.retrying + q.behind + q.running + q.unclear + q.handed_over for q in self.queues
        )

    @property
    def oldest_age(self) -> float | None:
        """Age in seconds of the oldest due job that waits, over all queues."""
        return max((q.oldest_age for q in self.queues if q.oldest_age is not None), default=None)

    def total(self, name: str) -> int:
        """One figure summed over all queues.

        >>> Backlog(0.0, (QueueBacklog("a", dead=2), QueueBacklog("b", dead=1))).total("dead")
        3
        """
        return sum(int(getattr(queue, name)) for queue in self.queues)


class Filter(msgspec.Struct, frozen=True):
    """Which jobs to list; everything given must match. ``text`` is looked for in ids and errors.

    ``late`` asks for open jobs that have used up this share of the time to their deadline (0.5 or more);
    it goes without ``states``. ``ended_after`` asks for dead letters younger than that.
    """

    states: tuple[State, ...] = ()
    queue: str | None = None
    task: str | None = None
    key: str | None = None
    event: tuple[str, str] | None = None
    text: str | None = None
    late: float | None = None
    ended_after: float | None = None


class Page(msgspec.Struct, frozen=True):
    """Jobs, newest first; ``after`` is the cursor of the next page, or None."""

    jobs: tuple[Job, ...]
    after: int | None = None


class Seen(msgspec.Struct, frozen=True):
    """A job as a human saw it: an act counts only while its token is still the same."""

    id: str
    token: int


class Record(msgspec.Struct, frozen=True):
    """One line of a journal stream."""

    seq: int
    at: float
    record: bytes


Statement = tuple[str, Sequence[Any]]
Plan = Generator[Statement, list[tuple[Any, ...]], Put]
"""Statements for somebody else's connection: yield (sql, parameters), be sent the rows, return the answer."""


class Journal(Protocol):
    """The second, smaller port: everything that is not a job.

    Streams are append-only; values change only by compare-and-swap (``None`` = absent).
    """

    def append(self, stream: str, records: Sequence[bytes]) -> None: ...

    def page(self, stream: str, after: int = 0, n: int = 100, newest_first: bool = False) -> list[Record]: ...

    def trim(self, stream: str, keep: int) -> int: ...

    def drop(self, stream: str, seqs: Sequence[int]) -> int: ...

    def get(self, name: str) -> bytes | None: ...

    def swap(self, name: str, old: bytes | None, new: bytes | None) -> bool: ...

    def scan(self, prefix: str, n: int = 1000) -> dict[str, bytes]: ...


class Store(Protocol):
    """The first port: where jobs live."""

    can: Can
    journal: Journal
    lease: float  # seconds; the default of this kind of store

    def now(self) -> float:
        """The store's clock."""

    def put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put:
        """Store all of it or nothing; return after it is on disk. Ids are the only judge of duplicates."""

    def try_put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put | None:
        """The same where nobody has to be waited for; else None, and nothing is stored.

        For event loops: it may take as long as a commit to the local disk, and never waits for a lock or a network.
        A store that cannot promise this always answers None (``can.puts_at_once``).
        """

    def plan(self, jobs: Sequence[NewJob]) -> Plan:
        """The same as statements for the caller's own connection and transaction (``can.within``)."""

    def enlist(self, worker: int, name: str, lease: float) -> None:
        """Make a worker known and start its lease. ``worker`` is random per process start."""

    def renew(self, worker: int, lease: float) -> bool:
        """Extend the lease; False when the store has given this worker up. Uses a connection of its own."""

    def retire(self, worker: int) -> None:
        """The worker is gone in an orderly way; whatever it still holds may lapse at once."""

    def claim(self, wanted: Wanted, pace: Pace, settlements: Sequence[Settlement] = ()) -> Claimed:
        """Settle first, then claim, in one transaction."""

    def settle(self, settlements: Sequence[Settlement]) -> tuple[Settlement, ...]:
        """Write outcomes; returns those refused (another token, worker or state). Bisects a failing batch."""

    def held(self, worker: int) -> tuple[Claim, ...]:
        """The running claims of a worker: what it works on as far as the store knows. For after a failed claim."""

    def note(self, claim: Claim, name: str, value: bytes | None) -> bool:
        """Write (or with None: remove) a note of the running job; False = the claim is lost, nothing written."""

    def notes(self, id: str) -> Mapping[str, bytes]:
        """All notes of a job: finished steps, start marks, progress."""

    def get(self, id: str) -> Job | None:
        """One job with payload and history, or None."""

    def find(self, wanted: Filter, after: int | None = None, n: int = 50) -> Page:
        """Jobs newest first by seq, without payload and history."""

    def event(self, source: str, id: str) -> NewEvent | None:
        """An accepted event with its bytes, or None."""

    def backlog(self) -> Backlog:
        """Exact counts and ages."""

    def change(self, seen: Sequence[Seen], event: Event, by: str, note: str = "") -> tuple[Seen, ...]:
        """A human act on the jobs as they were seen, audited in the same transaction; returns those refused."""

    def wait(self, timeout: float, bell: Bell) -> None:
        """Return when there may be new work, when the bell rings, or after *timeout* seconds."""

    def upkeep(self, after_lapse: AfterLapse | None) -> Upkept:
        """One bounded round: lapses (unless None), expiry, keys left behind, retention."""

    def migrate(self) -> list[str]:
        """Bring the tables up to date; returns the names of what was applied."""

    def close(self) -> None:
        """Let go of all connections; calls that still run end first."""
