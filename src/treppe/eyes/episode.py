"""An alert's memory: what somebody was told, when, and what is still to be sent. Pure.

One *episode* begins when a condition begins and ends with an all-clear. The first message goes out at once,
news after that at most once per digest. Each episode is one value in the journal; whoever swaps it first sends.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Tone = Literal["first", "digest", "clear"]

LEASE: Final = 60.0
"""Seconds one process may take to send before another tries; longer than any channel's time limit."""


class Message(msgspec.Struct, frozen=True):
    """What is sent. ``id`` stays the same over all tries, so that a receiver can drop a repetition."""

    id: str
    tone: Tone
    subject: str
    text: str
    facts: dict[str, object] = {}


class Pending(msgspec.Struct, frozen=True):
    """A message on its way out. ``next_at`` is the next try; while a try runs, it guards against a second one."""

    message: Message
    since: float
    next_at: float
    tries: int = 0
    error: str = ""


class Episode(msgspec.Struct, frozen=True):
    """What one recipient knows about one condition."""

    since: float
    told_at: float | None = None
    calm_since: float | None = None
    told: tuple[tuple[int, int], ...] = ()  # (seq, token) of jobs already named or counted
    total: int = 0
    pending: Pending | None = None

    @property
    def closed(self) -> bool:
        """The all-clear is written; the episode ends when it is delivered."""
        return self.pending is not None and self.pending.message.tone == "clear"


class Finding(msgspec.Struct, frozen=True):
    """What a rule sees now. ``marks`` are the jobs in view; a ``lasting`` condition is news by lasting on."""

    active: bool
    total: int = 0
    marks: tuple[tuple[int, int], ...] = ()
    since: float | None = None
    lasting: bool = False


class Timing(msgspec.Struct, frozen=True):
    """Seconds: how long a condition must last, how long it must be gone, and between two messages."""

    patience: float = 0.0
    calm: float = 60.0
    digest: float = 3600.0


def step(episode: Episode | None, found: Finding, now: float, timing: Timing) -> tuple[Episode | None, Tone | None]:
    """The episode after a look at the condition, and the tone of a message that is due now.

    >>> one, two = Finding(True, 1, ((7, 1),)), Finding(True, 2, ((7, 1), (9, 1)))
    >>> episode, tone = step(None, one, 100.0, Timing())
    >>> tone, step(episode, two, 200.0, Timing())[1], step(episode, two, 3700.0, Timing())[1]
    ('first', None, 'digest')
    >>> step(episode, one, 3700.0, Timing())[1] is None
    True
    """
    if episode is None:
        episode = Episode(since=now if found.since is None else found.since) if found.active else None
    if episode is None or episode.closed:
        return episode, None
    if not found.active:
        return _calmer(episode, now, timing)
    episode = msgspec.structs.replace(episode, calm_since=None)
    tone = _tone(episode, found, now, timing)
    if tone is None:
        return episode, None
    return msgspec.structs.replace(episode, told_at=now, told=found.marks, total=found.total), tone


def news(episode: Episode | None, found: Finding) -> int:
    """How many jobs of the condition nobody was told of yet."""
    if episode is None or episode.told_at is None:
        return found.total
    unseen = len(set(found.marks).difference(episode.told))
    beyond = found.total - len(found.marks)  # more than anybody looked at: only their number is known
    return max(unseen, found.total - episode.total) if beyond else unseen


def posted(episode: Episode, message: Message, now: float) -> Episode:
    """The episode with *message* to be sent."""
    return msgspec.structs.replace(episode, pending=Pending(message, since=now, next_at=now))


def trying(episode: Episode, now: float) -> Episode | None:
    """The episode while one process sends its message; None when there is nothing to send now."""
    pending = episode.pending
    if pending is None or pending.next_at > now:
        return None
    taken = msgspec.structs.replace(pending, tries=pending.tries + 1, next_at=now + LEASE)
    return msgspec.structs.replace(episode, pending=taken)


def delivered(episode: Episode) -> Episode | None:
    """The episode after its message arrived; None when it is over."""
    return None if episode.closed else msgspec.structs.replace(episode, pending=None)


def failed(episode: Episode, error: str, now: float) -> Episode:
    """The episode after a try in vain: 5 s, then twice as long each time, at most 15 minutes."""
    if episode.pending is None:
        return episode
    wait = min(5.0 * 2.0 ** min(episode.pending.tries - 1, 10), 900.0)
    pending = msgspec.structs.replace(episode.pending, error=error[:500], next_at=now + wait)
    return msgspec.structs.replace(episode, pending=pending)


def encode(episode: Episode | None) -> bytes | None:
    """As the journal keeps it."""
    return None if episode is None else msgspec.msgpack.encode(episode)


def decode(value: bytes) -> Episode:
    """What the journal kept."""
    return msgspec.msgpack.decode(value, type=Episode)


def _tone(episode: Episode, found: Finding, now: float, timing: Timing) -> Tone | None:
    if episode.pending is not None:
        return None
    if episode.told_at is None:
        return "first" if now - episode.since >= timing.patience else None
    heard = found.lasting or news(episode, found)
    return "digest" if heard and now - episode.told_at >= timing.digest else None


def _calmer(episode: Episode, now: float, timing: Timing) -> tuple[Episode | None, Tone | None]:
    if episode.told_at is None:
        return None, None
    calm_since = now if episode.calm_since is None else episode.calm_since
    episode = msgspec.structs.replace(episode, calm_since=calm_since)
    over = now - calm_since >= timing.calm and episode.pending is None
    return episode, "clear" if over else None
