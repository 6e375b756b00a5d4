"""Telling people: the first message at once, then at most one a digest, and an all-clear.

Any number of processes may run the same rounds. What each recipient knows is one value in the journal
(``alert:<rule>:<recipient>``, for held queues ``…:<queue>``); it is swapped *before* anything is sent, so of all
processes exactly one sends. A message stays in the value until it has arrived: a process that dies while sending
leaves it to the others, so a message may come twice (with the same id), but it is not lost.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import uuid
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from treppe.config import Alert, Settings
from treppe.errors import StoreError
from treppe.eyes import episode as episodes
from treppe.eyes.episode import Episode, Finding, Message, Pending, Timing, Tone
from treppe.eyes.measure import Figures
from treppe.eyes.plain import line
from treppe.eyes.rules import look
from treppe.eyes.send import send as send_by_channel
from treppe.eyes.tell import Sight, Told, compose
from treppe.eyes.words import Words
from treppe.store.protocol import Store

log = logging.getLogger(__name__)

Send = Callable[[Alert, str, Message], None]
"""Delivers one message to one address of an alert, or raises."""

PREFIX: Final = "alert:"
CALM: Final = 60.0
"""Seconds a condition must be gone before the all-clear: what flickers is told once."""


class Recipient(msgspec.Struct, frozen=True):
    """One address of one alert. Its journal name is stable over restarts and over changes of the list."""

    alert: Alert
    to: str

    @property
    def name(self) -> str:
        """The recipient's name in the journal, without the address itself (it may hold a secret)."""
        return f"{self.alert.name}.{hashlib.sha256(self.to.encode()).hexdigest()[:12]}"

    @property
    def target(self) -> str:
        """The address as people may see it.

        >>> Recipient(Alert("me", ()), "https://u:p@chat.example/hook/s3cret?k=1").target
        'https://chat.example'
        """
        url = urlsplit(self.to)
        return self.to if url.scheme == "mailto" else f"{url.scheme}://{url.hostname}"

    @property
    def held(self) -> str:
        """How the names of this recipient's values about held queues begin."""
        return f"{PREFIX}held:{self.name}:"

    def value(self, sight: Sight) -> str:
        """The journal name of what this recipient knows of a sight."""
        return f"{PREFIX}{sight.rule}:{self.name}" + (f":{sight.queue}" if sight.queue else "")

    def owns(self, value: str) -> bool:
        """Is this journal name one of this recipient's?"""
        return value.startswith(self.held) or value.endswith(f":{self.name}")


class Trouble(msgspec.Struct, frozen=True):
    """A message that does not get through. ``target`` is the address without anything secret."""

    alert: str
    target: str
    since: float
    tries: int
    error: str


class Alerts:
    """The rounds of one process. Call :meth:`round` about every second, or let :meth:`watch` do it.

    A round may take as long as its slowest channel (half a minute), so it wants a thread of its own.
    ``send`` delivers one message to one address; ``calm`` is in seconds.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        figures: Figures,
        *,
        send: Send = send_by_channel,
        calm: float = CALM,
    ) -> None:
        self._store, self._figures, self._send = store, figures, send
        self._calm = calm
        self._words = Words(settings.language)
        self._board = board_address(settings)
        self._recipients = recipients(settings)
        self._recent = calm + max((recipient.alert.digest for recipient in self._recipients), default=0.0)
        self._looked_at: float | None = None

    def round(self, stop: threading.Event | None = None) -> list[Message]:
        """Look once, send what is due, until *stop* is set; returns what has arrived.

        Raises nothing but :class:`StoreError`.
        """
        if not self._recipients:
            return []
        values = self._store.journal.scan(PREFIX)
        summary = self._figures.summary()
        if summary.at != self._looked_at:
            self._looked_at = summary.at
            sights = look(self._store, summary, self._recent)
            for recipient in self._recipients:
                values |= self._compare(recipient, sights, values)
        due = [(recipient, name) for recipient in self._recipients for name in values if recipient.owns(name)]
        arrived = []
        for recipient, name in due:
            if stop is None or not stop.is_set():
                arrived += self._deliver(recipient, name, values[name])
        return arrived

    def watch(self, stop: threading.Event, every: float = 1.0) -> None:
        """Go round until *stop* is set, whatever happens to the store meanwhile."""
        while not stop.wait(every):
            try:
                self.round(stop)
            except StoreError as error:
                log.warning("alerts wait for the store: %s", error)

    def _compare(self, recipient: Recipient, sights: list[Sight], values: dict[str, bytes]) -> dict[str, bytes]:
        """What this recipient's values became, where this process was the first to change them."""
        wanted = [sight for sight in sights if _kind(sight.rule) in recipient.alert.when]
        seen = {recipient.value(sight): sight for sight in wanted}
        gone = {name: _over(recipient, name) for name in values if name.startswith(recipient.held) and name not in seen}
        changed = {}
        for name, sight in (seen | gone).items():
            new = self._swapped(recipient, sight, name, values.get(name))
            if new is not None:
                changed[name] = new
        return changed

    def _swapped(self, recipient: Recipient, sight: Sight, name: str, old: bytes | None) -> bytes | None:
        known, now = _known(old), self._store.now()
        patience = recipient.alert.held_after if sight.rule == "held" else 0.0
        timing = Timing(patience, self._calm, recipient.alert.digest)
        episode, tone = episodes.step(known, sight.finding, now, timing)
        if episode is not None and tone is not None:
            episode = episodes.posted(episode, self._message(recipient, sight, tone, known, episode), now)
        new = episodes.encode(episode)
        return new if new != old and self._store.journal.swap(name, old, new) else None

    def _message(
        self, recipient: Recipient, sight: Sight, tone: Tone, known: Episode | None, episode: Episode
    ) -> Message:
        told = Told(
            id=f"msg_{uuid.uuid4().hex}",
            alert=recipient.alert.name,
            since=episode.since,
            news=episodes.news(known, sight.finding),
            digest=recipient.alert.digest,
            board=self._board,
        )
        return compose(_untold_first(sight, known), tone, told, self._words)

    def _deliver(self, recipient: Recipient, name: str, value: bytes) -> list[Message]:
        known = _known(value)
        taken = episodes.trying(known, self._store.now()) if known is not None else None
        if taken is None or taken.pending is None or not self._store.journal.swap(name, value, episodes.encode(taken)):
            return []
        message = taken.pending.message
        try:
            self._send(recipient.alert, recipient.to, message)
        except Exception as error:  # any trouble of any channel is for people to see, and is tried again
            reason = line(str(error) or type(error).__name__)
            log.warning("alert %s does not reach %s: %s", recipient.alert.name, recipient.target, reason)
            self._conclude(name, message, lambda episode: episodes.failed(episode, reason, self._store.now()))
            return []
        self._conclude(name, message, episodes.delivered)
        return [message]

    def _conclude(self, name: str, message: Message, change: Callable[[Episode], Episode | None]) -> None:
        """Write down how the try ended, also when a look has changed the value meanwhile."""
        for _ in range(_TRIES):
            value = self._store.journal.get(name)
            episode = _known(value)
            if episode is None or episode.pending is None or episode.pending.message.id != message.id:
                return
            if self._store.journal.swap(name, value, episodes.encode(change(episode))):
                return


def recipients(settings: Settings) -> tuple[Recipient, ...]:
    """Everybody who is told something."""
    return tuple(Recipient(alert, to) for alert in settings.alerts.values() for to in alert.to)


def troubles(store: Store, settings: Settings) -> list[Trouble]:
    """The messages that do not get through at present, oldest first."""
    values = store.journal.scan(PREFIX)
    found = [
        Trouble(recipient.alert.name, recipient.target, pending.since, pending.tries, pending.error)
        for recipient in recipients(settings)
        for name, value in values.items()
        if recipient.owns(name) and (pending := _pending(value)) is not None and pending.error
    ]
    return sorted(found, key=lambda trouble: trouble.since)


def board_address(settings: Settings) -> str | None:
    """Where people find the board, as far as the settings tell."""
    public = settings.web.public_url
    return None if public is None else f"{public.rstrip('/')}/board"


_TRIES: Final = 10


def _known(value: bytes | None) -> Episode | None:
    """The episode behind a value; one that cannot be read (another version wrote it) begins anew."""
    if value is None:
        return None
    try:
        return episodes.decode(value)
    except msgspec.DecodeError:
        return None


def _pending(value: bytes) -> Pending | None:
    episode = _known(value)
    return None if episode is None else episode.pending


def _kind(rule: str) -> str:
    return rule.partition("_")[0]


def _over(recipient: Recipient, name: str) -> Sight:
    return Sight("held", Finding(False), queue=name.removeprefix(recipient.held))


def _untold_first(sight: Sight, known: Episode | None) -> Sight:
    told = set(known.told) if known is not None else set()
    order = sorted(range(len(sight.jobs)), key=lambda index: sight.finding.marks[index] in told)
    return msgspec.structs.replace(sight, jobs=tuple(sight.jobs[index] for index in order))
