"""``POST /in/{source}``: check, store, answer. Bare ASGI: a framework would cost more than the rest.

Route → limits → bytes → signature → ids → one put → answer. Nothing is called on the way and no JSON is needed. What
was answered with 2xx is on disk; every trouble of ours is a 503 with Retry-After, as some senders never come back
after a 4xx.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from treppe.config import Destination, Secret, Source, Web
from treppe.config.parse import open_secret
from treppe.door.answers import Answer, HeaderPairs, Receive, Reply, Scope, Send, Take, accepted, our_trouble, problem
from treppe.door.arrival import Arrival, Headers
from treppe.door.body import Replay
from treppe.door.disk import DiskWatch
from treppe.door.figures import DoorFigures
from treppe.door.guard import SMALL, Guard
from treppe.door.sender import Meant, Sender
from treppe.errors import StoreUnavailable
from treppe.intake import Batcher
from treppe.store.protocol import Journal, Put

PREFIX: Final = "/in/"
"""Sources live below this path."""

CONFLICTS: Final = "conflicts"
"""The journal stream of what came with a known id and another content."""

MOST_CONFLICTS: Final = 1000
MOST_CONFLICT_BYTES: Final = 256 * 1024

log = logging.getLogger("treppe.door")


class Door:
    """The ASGI app for all sources. ConfigError when a source cannot work as it is configured.

    Behind a :class:`Guard` it takes what that lets through; without one it is its own, with the limits of *web*.
    ``status_url`` makes a link from source and event id; ``disk`` is asked for room before anything is stored.
    A server that has a whole request in its hands may call :attr:`shortcuts` instead, which saves the way through ASGI.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        destinations: Mapping[str, Destination],
        batcher: Batcher,
        journal: Journal,
        *,
        web: Web | None = None,
        disk: DiskWatch | None = None,
        status_url: Callable[[str, str], str] | None = None,
        clock: Callable[[], float] = time.time,
        reveal: Callable[[Secret], bytes] = open_secret,
    ) -> None:
        self.figures = DoorFigures()
        senders = [Sender(source, destinations, reveal) for source in sources.values()]
        self._at = {f"{PREFIX}{sender.name}{end}": sender for sender in senders for end in ("", "/")}
        self.shortcuts: dict[bytes, Take] = {
            path.encode(): partial(self._take, sender) for path, sender in self._at.items() if sender.max_body >= SMALL
        }
        self._batcher, self._journal = batcher, journal
        self._disk, self._status_url, self._clock = disk, status_url, clock
        self._guarded = Guard(self, web or Web(), self.max_body)
        self._conflicts_kept: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; websockets and lifespan are not for us."""
        if isinstance(receive, Replay):
            answer = await self._answer(scope, receive.body)
            await answer.send(send)
        elif scope["type"] == "http":
            await self._guarded(scope, receive, send)

    def max_body(self, path: str) -> int | None:
        """The most bytes a body may have there, for the guard; None where nobody is at home."""
        sender = self._at.get(path)
        return sender.max_body if sender else None

    async def _answer(self, scope: Scope, body: bytes) -> Answer:
        path: str = scope["path"]
        sender = self._at.get(path.removeprefix(scope.get("root_path", "")))
        if sender is None:
            self.figures.refused["unknown-source"] += 1
            return problem(404, "There is no source of this name")
        if scope["method"] != "POST":
            return _small_talk(scope)
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def reply(answer: Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        self._take(sender, scope["headers"], body, reply)
        return await answered

    def _take(self, sender: Sender, headers: HeaderPairs, body: bytes, reply: Reply) -> None:
        """One POST with its whole body; *reply* is called once: now, or after the commit."""
        began = time.perf_counter()
        try:
            arrival = Arrival(Headers(headers), body)
            refusal = self._refusal(sender, arrival)
            if refusal is not None:
                reply(refusal)
                return
            meant = sender.meaning(arrival)
            self._batcher.submit(meant.jobs, (meant.event,), partial(self._stored, sender, meant, began, reply))
        except Exception as error:
            reply(self._our_trouble(sender, error))

    def _refusal(self, sender: Sender, arrival: Arrival) -> Answer | None:
        if self._disk is not None and self._disk.full():
            self.figures.source(sender.name).refused["disk-full"] += 1
            return our_trouble("There is too little room on our disk. Nothing was stored; please send it again later")
        fault = sender.fault(arrival, self._clock())
        if fault is not None:
            self.figures.source(sender.name).refused[fault.code] += 1
            return problem(401, fault.text[0].upper() + fault.text[1:], _CHALLENGE)
        return None

    def _stored(self, sender: Sender, meant: Meant, began: float, reply: Reply, end: Put | Exception) -> None:
        if isinstance(end, Exception):
            reply(self._our_trouble(sender, end))
        elif conflicts := _conflicts(end):
            keeping = asyncio.ensure_future(
                self._keep_conflict(sender, meant, conflicts, end.events[0].duplicate, reply)
            )
            self._conflicts_kept.add(keeping)
            keeping.add_done_callback(self._conflicts_kept.discard)
        else:
            reply(self._accepted(sender, meant, end.events[0].duplicate))
            self.figures.answered(time.perf_counter() - began)

    async def _keep_conflict(
        self, sender: Sender, meant: Meant, conflicts: dict[str, str], duplicate: bool, reply: Reply
    ) -> None:
        """Before the answer: what differs is nowhere else, and the sender believes we have it."""
        try:
            await asyncio.to_thread(self._write_conflict, meant, conflicts)
        except Exception as error:
            reply(self._our_trouble(sender, error))
        else:
            self.figures.source(sender.name).conflicts += 1
            reply(self._accepted(sender, meant, duplicate))

    def _our_trouble(self, sender: Sender, error: Exception) -> Answer:
        self.figures.source(sender.name).refused["store"] += 1
        if isinstance(error, StoreUnavailable):
            log.warning("source %s: answered 503, the store is not available: %s", sender.name, error)
        else:
            log.error("source %s: answered 503, a webhook could not be stored", sender.name, exc_info=error)
        return our_trouble("It could not be stored right now. Please send it again")

    def _accepted(self, sender: Sender, meant: Meant, duplicate: bool) -> Answer:
        self._count(sender, meant, duplicate)
        fields: dict[str, Any] = {"id": meant.event.id, "state": "accepted", "duplicate": duplicate}
        if meant.filtered:
            fields["filtered"] = True
        if self._status_url:
            fields["status_url"] = self._status_url(sender.name, meant.event.id)
        return accepted(sender.answer, **fields)

    def _count(self, sender: Sender, meant: Meant, duplicate: bool) -> None:
        figures = self.figures.source(sender.name)
        if duplicate:
            figures.duplicates += 1
        else:
            figures.accepted += 1
            figures.filtered += bool(meant.filtered)
            for note in meant.notes:
                figures.notes[note] += 1

    def _write_conflict(self, meant: Meant, conflicts: dict[str, str]) -> None:
        event = meant.event
        record = {
            "source": event.source,
            "id": event.id,
            "at": self._clock(),
            "differs": conflicts,
            "topic": event.topic,
            "headers": event.headers,
            "bytes": len(event.body),
            "sha256": hashlib.sha256(event.body).hexdigest(),
            "body": event.body[:MOST_CONFLICT_BYTES],  # base64 in JSON
        }
        self._journal.append(CONFLICTS, [msgspec.json.encode(record)])
        self._journal.trim(CONFLICTS, MOST_CONFLICTS)


_CHALLENGE: Final = (b"www-authenticate", b"Signature")  # RFC 9110, 15.5.2 wants one
_ALLOW: Final = (b"allow", b"GET, HEAD, POST, OPTIONS")


def _small_talk(scope: Scope) -> Answer:
    """What senders and people ask before they send anything."""
    if scope["method"] in ("GET", "HEAD"):
        return Answer(200)
    if scope["method"] == "OPTIONS":
        return Answer(200, headers=(_ALLOW, *_consent(Headers(scope["headers"]))))
    return problem(405, "Webhooks are sent here with POST", _ALLOW)


def _consent(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The handshake of CloudEvents' "HTTP 1.1 Web Hooks", 4.2: we take events of everybody who can sign."""
    origin = headers.only(b"webhook-request-origin")
    if not origin:
        return []
    return [(b"webhook-allowed-origin", origin), (b"webhook-allowed-rate", b"*")]


def _conflicts(put: Put) -> dict[str, str]:
    """What differs, by id."""
    return {placed.id: placed.conflict for placed in put.events + put.jobs if placed.conflict}
