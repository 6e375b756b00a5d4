"""What happened, as whoever took part can tell it: all that the checker sees besides the final store.

``at`` is the store's clock when it happened, ``on`` the monotonic time. ``told`` says whether the caller got the
answer: what was done and not told is *unknown* to the caller, but it was done.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from treppe.job import Claim, Event, NewEvent, NewJob, Settlement
from treppe.store.protocol import Put, Seen, Upkept


class Tried(NamedTuple):
    """Somebody is about to put these; from now on they may exist."""

    jobs: tuple[NewJob, ...]


class Stored(NamedTuple):
    at: float
    jobs: tuple[NewJob, ...]
    events: tuple[NewEvent, ...]
    answer: Put
    told: bool


class RolledBack(NamedTuple):
    """Put within a transaction that did not commit."""

    jobs: tuple[NewJob, ...]


class Claimed(NamedTuple):
    at: float
    on: float
    worker: int
    claims: tuple[Claim, ...]
    told: bool


class Settled(NamedTuple):
    at: float
    settlements: tuple[Settlement, ...]
    refused: tuple[Settlement, ...]
    told: bool


class Leased(NamedTuple):
    """A worker took, kept, lost or gave back (until = 0) its lease. ``counts`` is what the store said."""

    at: float
    worker: int
    until: float
    counts: bool


class Kept(NamedTuple):
    """A round of upkeep began; ``lapses`` says whether it was allowed to lapse anything."""

    at: float
    on: float
    process: str
    lapses: bool


class Swept(NamedTuple):
    """A round of upkeep ended, one way or the other."""

    at: float
    lapses: bool
    done: Upkept | None


class Began(NamedTuple):
    """A handler was called."""

    at: float
    on: float
    claim: Claim


class Called(NamedTuple):
    """The other side got the call of this claim. ``acted`` is what it really did, whatever it answered."""

    on: float
    claim: Claim
    acted: bool


class Noted(NamedTuple):
    claim: Claim
    kept: bool


class Acted(NamedTuple):
    """A human's act, or the other side's confirmation."""

    at: float
    seen: Seen
    event: Event
    refused: bool


class Born(NamedTuple):
    on: float
    process: str


class Trouble(NamedTuple):
    """The store did not answer a call of this process."""

    on: float
    process: str
    call: str


class Died(NamedTuple):
    on: float
    process: str


class Stepped(NamedTuple):
    """The store's clock was set."""

    before: float
    after: float


class Healed(NamedTuple):
    """From now on nothing goes wrong any more."""

    at: float
    on: float


class Counted(NamedTuple):
    """The figures that people see, at some moment in between."""

    at: float
    open: int
    accepted: int
    done: int
    dead: int


Entry = (
    Tried | Stored | RolledBack | Claimed | Settled | Leased | Kept | Swept | Began | Called | Noted | Acted | Born
    | Trouble | Died | Stepped | Healed | Counted
)  # fmt: skip


class Final(NamedTuple):
    """The store in the end, by its own port only."""

    at: float
    jobs: dict[str, Any]  # every id that was ever tried, and the job or None
    listed: tuple[Any, ...]  # what find() shows
    backlog: Any
    audit: tuple[dict[str, Any], ...]
    drained: bool  # everything came to an end in time
    running_late: tuple[Any, ...]  # two leases after the healing: the living workers, and what ran (seq, token, id)
