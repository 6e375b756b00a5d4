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
from typing import Any, Final

import msgspec

from treppe.config import Destination, Secret, Source, Web
from treppe.config.parse import open_secret
from treppe.door.answers import Answer, Receive, Scope, Send, accepted, our_trouble, problem
from treppe.door.arrival import Arrival, Headers
from treppe.door.body import Replay
from treppe.door.disk import DiskWatch
from treppe.door.figures import DoorFigures
from treppe.door.guard import Guard
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
        self._batcher, self._journal = batcher, journal
        self._disk, self._status_url, self._clock = disk, status_url, clock
        self._guarded = Guard(self, web or Web(), self.max_body)

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
        began = time.perf_counter()
        path: str = scope["path"]
        sender = self._at.get(path.removeprefix(scope.get("root_path", "")))
        if sender is None:
            self.figures.refused["unknown-source"] += 1
            return problem(404, "There is no source of this name")
        if scope["method"] != "POST":
            return _small_talk(scope)
        answer = await self._judge(sender, Arrival(Headers(scope["headers"]), body))
        if answer.status < 300:
            self.figures.answered(time.perf_counter() - began)
        return answer

    async def _judge(self, sender: Sender, arrival: Arrival) -> Answer:
        refused = self.figures.source(sender.name).refused
        if self._disk is not None and self._disk.full():
            refused["disk-full"] += 1
            return our_trouble("There is too little room on our disk. Nothing was stored; please send it again later")
        fault = sender.fault(arrival, self._clock())
        if fault is not None:
            refused[fault.code] += 1
            return problem(401, fault.text[0].upper() + fault.text[1:], _CHALLENGE)
        try:
            return await self._store(sender, sender.meaning(arrival))
        except StoreUnavailable as error:
            refused["store"] += 1
            log.warning("source %s: answered 503, the store is not available: %s", sender.name, error)
        except Exception:
            refused["store"] += 1
            log.exception("source %s: answered 503, a webhook could not be stored", sender.name)
        return our_trouble("It could not be stored right now. Please send it again")

    async def _store(self, sender: Sender, meant: Meant) -> Answer:
        put = await self._batcher.put(meant.jobs, (meant.event,), checked=True)
        if conflicts := _conflicts(put):
            await asyncio.to_thread(self._keep_conflict, meant, conflicts)
        self._count(sender, meant, put, bool(conflicts))
        duplicate = put.events[0].duplicate
        fields: dict[str, Any] = {"id": meant.event.id, "state": "accepted", "duplicate": duplicate}
        if meant.filtered:
            fields["filtered"] = True
        if self._status_url:
            fields["status_url"] = self._status_url(sender.name, meant.event.id)
        return accepted(sender.answer, **fields)

    def _count(self, sender: Sender, meant: Meant, put: Put, conflict: bool) -> None:
        figures = self.figures.source(sender.name)
        figures.conflicts += conflict
        if put.events[0].duplicate:
            figures.duplicates += 1
        else:
            figures.accepted += 1
            figures.filtered += bool(meant.filtered)
            for note in meant.notes:
                figures.notes[note] += 1

    def _keep_conflict(self, meant: Meant, conflicts: dict[str, str]) -> None:
        """Before the answer: what differs is nowhere else, and the sender believes we have it."""
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
