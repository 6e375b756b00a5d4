"""The words and the state machine: what a job is, what can happen to it, and what people say about it.

Nothing but this table changes a state. Stores guard their writes with it, the docs draw their
diagram from it, and every row has a test of its own.

Times are Unix seconds (``float``) by the store's clock; durations are seconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from treppe.errors import IllegalTransition


class State(StrEnum):
    """Where a job is in its life. Why a job *waits* is derived when read, never stored."""

    WAITING = "waiting"
    RUNNING = "running"
    HANDED_OVER = "handed_over"
    UNCLEAR = "unclear"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"
    MOVED = "moved"

    @property
    def final(self) -> bool:
        """True when only a human can change it any more.

        >>> State.DEAD.final, State.UNCLEAR.final
        (True, False)
        """
        return self in _FINAL


_FINAL: Final = frozenset({State.DONE, State.DEAD, State.CANCELLED, State.MOVED})


class Event(StrEnum):
    """What happens to a job."""

    CLAIM = "claim"
    EXPIRE = "expire"
    CANCEL = "cancel"
    ASK_CANCEL = "ask_cancel"
    FINISH = "finish"
    HAND_OVER = "hand_over"
    CONFIRM = "confirm"
    DEFER = "defer"
    LAPSE = "lapse"
    DOUBT = "doubt"
    BURY = "bury"
    REVIVE = "revive"
    MOVE = "move"


class When(StrEnum):
    """What must hold besides the state for a transition to be allowed."""

    ALWAYS = "always"
    FLAGGED = "somebody asked for the cancel"
    LATE = "late settle of the last token, nobody claimed since"
    LOOKING = 'repeat = "look": the worker looks first'
    RELAYING = "the relay's own claim"


class Transition(msgspec.Struct, frozen=True):
    """One row of the table."""

    source: State
    event: Event
    target: State
    when: When = When.ALWAYS
    note: str = ""


_S, _E, _W = State, Event, When

TRANSITIONS: Final[tuple[Transition, ...]] = (
    Transition(_S.WAITING, _E.CLAIM, _S.RUNNING, note="token + 1"),
    Transition(_S.WAITING, _E.EXPIRE, _S.DEAD),
    Transition(_S.WAITING, _E.CANCEL, _S.CANCELLED),
    Transition(_S.HANDED_OVER, _E.CANCEL, _S.CANCELLED),
    Transition(_S.UNCLEAR, _E.CANCEL, _S.CANCELLED),
    Transition(_S.DEAD, _E.CANCEL, _S.CANCELLED, note="people say: discard"),
    Transition(_S.RUNNING, _E.ASK_CANCEL, _S.RUNNING, note="a flag; the settle decides"),
    Transition(_S.RUNNING, _E.CANCEL, _S.CANCELLED, _W.FLAGGED, note="a defer becomes a cancel"),
    Transition(_S.RUNNING, _E.FINISH, _S.DONE),
    Transition(_S.RUNNING, _E.HAND_OVER, _S.HANDED_OVER, note="a 2xx is not the end"),
    Transition(_S.RUNNING, _E.CONFIRM, _S.DONE, note="the confirm was faster than our settle"),
    Transition(_S.RUNNING, _E.DEFER, _S.WAITING, note="charged or not"),
    Transition(_S.RUNNING, _E.LAPSE, _S.WAITING, note="the lease ran out, the job may be repeated"),
    Transition(_S.RUNNING, _E.DOUBT, _S.UNCLEAR, note="nobody knows whether the other side acted"),
    Transition(_S.RUNNING, _E.BURY, _S.DEAD),
    Transition(_S.HANDED_OVER, _E.CONFIRM, _S.DONE),
    Transition(_S.HANDED_OVER, _E.DEFER, _S.WAITING, note="the other side reports a failure"),
    Transition(_S.HANDED_OVER, _E.DOUBT, _S.UNCLEAR, note="not confirmed in time"),
    Transition(_S.HANDED_OVER, _E.BURY, _S.DEAD),
    Transition(_S.WAITING, _E.FINISH, _S.DONE, _W.LATE),
    Transition(_S.WAITING, _E.DEFER, _S.WAITING, _W.LATE),
    Transition(_S.WAITING, _E.BURY, _S.DEAD, _W.LATE),
    Transition(_S.WAITING, _E.HAND_OVER, _S.HANDED_OVER, _W.LATE),
    Transition(_S.WAITING, _E.CONFIRM, _S.DONE, _W.LATE),
    Transition(_S.UNCLEAR, _E.FINISH, _S.DONE, _W.LATE),
    Transition(_S.UNCLEAR, _E.DEFER, _S.WAITING, _W.LATE),
    Transition(_S.UNCLEAR, _E.HAND_OVER, _S.HANDED_OVER, _W.LATE),
    Transition(_S.UNCLEAR, _E.CLAIM, _S.RUNNING, _W.LOOKING),
    Transition(_S.UNCLEAR, _E.CONFIRM, _S.DONE, note="by a human: it happened"),
    Transition(_S.UNCLEAR, _E.REVIVE, _S.WAITING, note="by a human: do it again"),
    Transition(_S.UNCLEAR, _E.BURY, _S.DEAD, note="by a human, or late"),
    Transition(_S.DEAD, _E.REVIVE, _S.WAITING, note="budgets and expiry anew"),
    Transition(_S.DEAD, _E.CONFIRM, _S.DONE, note="done by hand"),
    Transition(_S.WAITING, _E.MOVE, _S.MOVED, note="lives in another store; never counted as done"),
    Transition(_S.HANDED_OVER, _E.MOVE, _S.MOVED),
    Transition(_S.DEAD, _E.MOVE, _S.MOVED),
    Transition(_S.UNCLEAR, _E.MOVE, _S.MOVED),
    Transition(_S.RUNNING, _E.MOVE, _S.MOVED, _W.RELAYING),
)

_TABLE: Final = {(row.source, row.event): row for row in TRANSITIONS}


def advance(state: State, event: Event, when: When = When.ALWAYS) -> State:
    """The state after *event*, or :class:`IllegalTransition`.

    *when* names what else is true, for the rows that need more than the state.

    >>> advance(State.RUNNING, Event.FINISH)
    <State.DONE: 'done'>
    >>> advance(State.WAITING, Event.FINISH, When.LATE)
    <State.DONE: 'done'>
    >>> advance(State.DONE, Event.REVIVE)
    Traceback (most recent call last):
    treppe.errors.IllegalTransition: a job that is done cannot be changed by "revive"
    """
    row = _TABLE.get((state, event))
    if row is None or row.when not in (When.ALWAYS, when):
        raise IllegalTransition(state, event)
    return row.target


def sources_of(event: Event) -> tuple[State, ...]:
    """The states from which *event* is allowed without further conditions: the guard of a human act.

    >>> [str(state) for state in sources_of(Event.REVIVE)]
    ['unclear', 'dead']
    """
    return tuple(row.source for row in TRANSITIONS if row.event is event and row.when is When.ALWAYS)


class Repeat(StrEnum):
    """May the work be done again when nobody knows whether it happened?"""

    SAFE = "safe"  # idempotent, or the API documents an idempotency key
    LOOK = "look"  # ask the other side first
    ASK = "ask"  # a human decides


class Kind(StrEnum):
    """How an attempt ended. ``policy.charge`` holds what each kind means for budget and queue."""

    OK = "ok"
    RELEASED = "released"  # given back: shutdown, or never started
    SNOOZED = "snoozed"  # the handler asked to wait; nobody's fault
    AGAIN = "again"  # 408, 425, 409 in progress: a short wait, same key
    THROTTLED = "throttled"  # 429, 503 with Retry-After
    DOWN = "down"  # DNS, connect, TLS: certainly did not act
    FAILED = "failed"  # 5xx, time-out after bytes left, an exception in a task
    CHARGED = "charged"  # the handler says: my own fault, try again
    LOGIN = "login"  # 401, 403
    GONE = "gone"  # 404, 410 on a fixed URL
    MOVED = "moved"  # 3xx
    REFUSED = "refused"  # the data is at fault: 400, 422 …; dead at once
    UNCLEAR = "unclear"  # the handler says nobody knows
    LAPSED = "lapsed"  # the worker's lease ran out
    EXPIRED = "expired"
    ACT = "act"  # a human's or the remote's act, kept in the history


class Outcome(msgspec.Struct, frozen=True):
    """The value a handler ends with. A pure step turns it into a :class:`Settlement`.

    ``acted`` says what is known about the other side: ``False`` = certainly nothing happened,
    ``None`` = nobody knows. ``after`` is a wait in seconds that somebody asked for (Retry-After).
    """

    kind: Kind
    error: str = ""
    result: bytes | None = None
    after: float | None = None
    acted: bool | None = None
    detail: bytes | None = None  # JSON for people: status, headers, the head of the answer
    handed_over: bool = False


START_MARK: Final = "step-started:"
"""How the notes begin that say "this was started, and must not be started again by itself"."""

BANDS: Final = 4


def band_of(priority: int) -> int:
    """The band a priority falls into; 0 is served first.

    >>> [band_of(p) for p in (100, 50, 49, 1, 0, -1)]
    [0, 0, 1, 1, 2, 3]
    """
    return 0 if priority >= 50 else 1 if priority > 0 else 2 if priority == 0 else 3


class NewEvent(msgspec.Struct, frozen=True):
    """One accepted delivery of a source: bytes and headers exactly as they came."""

    source: str
    id: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/octet-stream"
    topic: str = ""


class NewJob(msgspec.Struct, frozen=True, gc=False):
    """A job on its way in. ``at`` (Unix seconds) or ``delay`` (seconds) sets the first due time.

    A job of an event names it by (source, event id) in ``event`` and carries no payload of its own.
    """

    id: str
    task: str
    queue: str
    payload: bytes = b""
    content_type: str = "application/json"
    event: tuple[str, str] | None = None
    key: str | None = None
    priority: int = 0
    repeat: Repeat = Repeat.SAFE
    attempts: int = 5  # charged ones
    crashes: int = 3
    delay: float = 0.0
    at: float | None = None
    expires: float = 14 * 86400.0  # counted from the first due time
    deadline: float | None = None  # seconds after the first due time; a promise, kills nothing
    keep: float = 30 * 86400.0  # how long the id stays taken after the end
    skip_dead: bool = False  # a dead head lets its key go on


class Placed(msgspec.Struct, frozen=True, gc=False):
    """What became of one :class:`NewJob` or :class:`NewEvent`. ``conflict`` names what differs from the first."""

    id: str
    seq: int
    duplicate: bool = False
    conflict: str = ""


class Claim(msgspec.Struct, gc=False):
    """A worker's right to one job. Only a settle that shows this token and this worker counts."""

    seq: int
    id: str
    token: int
    worker: int
    task: str
    queue: str
    payload: bytes
    content_type: str
    key: str | None
    repeat: Repeat
    claims: int  # how often it was claimed since the last revive, this time included
    charged: int
    attempts: int
    crashes: int
    due_at: float
    claimed_at: float
    expires_at: float
    deadline_at: float | None
    start_at: float = 0.0  # not before, by the store's clock (a paced grant)
    suspect: bool = False
    probe: bool = False
    looking: bool = False  # it was unclear: look before doing it again
    slotted: bool = False  # it holds a slot of a concurrency limit
    seen: tuple[int, int, float] | None = None  # the task's counters, and when, at this job's last failure
    health: tuple[int, int] | None = None  # the task's counters (succeeded, tried) now
    event: tuple[str, str] | None = None
    topic: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    notes: dict[str, bytes] | None = None


class Report(msgspec.Struct, frozen=True, array_like=True):
    """What a settle learned about its queue; the queue's next grant folds it in."""

    kind: Kind
    job: int  # seq
    at: float = 0.0  # the store's clock, set when it is appended
    after: float | None = None
    n: int = 1  # that many alike in a row (only for OK)
    probe: bool = False


class Settlement(msgspec.Struct, gc=False):
    """What to write for one ended claim. ``delay`` is counted from the store's now."""

    claim: Claim
    event: Event
    kind: Kind
    charged: bool = False
    delay: float = 0.0
    error: str = ""
    result: bytes | None = None
    detail: bytes | None = None
    report: Report | None = None
    counts: bool = True  # the task's health counters take note of it
    started: bool = True  # False: it never reached its handler, and was no try
    confirm_within: float = 86400.0


class Grant(msgspec.Struct, frozen=True):
    """How many jobs of a queue may start, and when.

    ``flow`` is the queue's new value to keep; None = as it was, ``b""`` = nothing to remember any more.
    """

    n: int
    flow: bytes | None = None
    starts: tuple[float, ...] = ()
    wait: float | None = None  # seconds until it is worth asking again
    probe: bool = False
    slots: int | None = None  # at most so many in flight


class Attempt(msgspec.Struct, frozen=True):
    """One line of a job's history."""

    token: int
    event: Event
    kind: Kind
    charged: bool
    due_at: float
    started_at: float | None
    finished_at: float
    worker: int | None
    error: str = ""
    result: bytes | None = None
    detail: bytes | None = None


class Job(msgspec.Struct, frozen=True):
    """A job as people read it."""

    seq: int
    id: str
    task: str
    queue: str
    state: State
    key: str | None
    priority: int
    repeat: Repeat
    token: int
    claims: int
    charged: int
    attempts: int
    crashes: int
    created_at: float
    due_at: float
    run_at: float | None
    deadline_at: float | None
    expires_at: float | None
    ended_at: float | None = None
    error: str = ""
    result: bytes | None = None
    event: tuple[str, str] | None = None
    behind: str | None = None  # the id of the job that holds its key
    suspect: bool = False
    cancelling: bool = False
    payload: bytes | None = None
    content_type: str = ""
    history: tuple[Attempt, ...] = ()
