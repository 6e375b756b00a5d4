"""What every request must keep to before an app sees it: size, time, and how many at once.

The app gets the body whole or is not called. uvicorn has no deadline for bodies; any ASGI server may stand in front.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from treppe.config import Web
from treppe.door.answers import RETRY_AFTER, Answer, App, Receive, Scope, Send, our_trouble, problem
from treppe.door.body import BodyRefused, Replay, read_body, refuse, too_large

VERSIONS: Final = frozenset({"1.0", "1.1", "2", "3"})

WATCHED: Final = "treppe.watched"
"""In a scope's state: the server watches the time itself, which costs nothing where the body comes with the headers."""

MAX_HEADERS: Final = 100
MAX_HEAD_BYTES: Final = 16 * 1024
"""Path, query and headers together."""

MAX_BODY: Final = 1 << 20
"""Bytes of a body where the app names no other limit."""

MAX_HELD: Final = 256 << 20
"""Bytes of large bodies that are held in memory at once."""

SMALL: Final = 64 * 1024
"""Bodies up to so many bytes are not counted as held."""


class Guard:
    """An ASGI app around another one. ``max_body`` says by path how many bytes a body may have."""

    def __init__(
        self,
        app: App,
        web: Web,
        max_body: Callable[[str], int | None] = lambda path: None,
        max_held: int = MAX_HELD,
    ) -> None:
        self._app, self._web, self._max_body, self._max_held = app, web, max_body, max_held
        self.refused: Counter[int] = Counter()  # by status, since the start
        self._running = 0
        self._running_of: dict[str, int] = {}
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what breaks a rule; hand on the rest with its body read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = scope["client"][0] if scope.get("client") else ""
        others = self._running_of.get(client, 0)
        announced, broken = look_at_head(scope)
        refusal = broken or self._crowded(others)
        if refusal:
            await self._refuse(refusal, receive, send)
            return
        self._running += 1
        self._running_of[client] = others + 1
        try:
            await self._hand_on(scope, receive, send, announced)
        finally:
            self._running -= 1
            self._running_of[client] -= 1
            if not self._running_of[client]:
                del self._running_of[client]

    def _crowded(self, others: int) -> Answer | None:
        if self._running >= self._web.max_connections:
            return our_trouble("Too many requests are being worked on right now", last=True)
        if others >= self._web.max_connections_per_ip:
            return problem(429, "Too many requests at once from your address", last=True, retry_after=RETRY_AFTER)
        return None

    def _within(self, scope: Scope) -> float | None:
        return None if WATCHED in scope.get("state", ()) else self._web.body_timeout

    async def _refuse(self, answer: Answer, receive: Receive, send: Send, more: bool = True) -> None:
        self.refused[answer.status] += 1
        await (refuse(answer, receive, send) if more else answer.send(send))

    async def _hand_on(self, scope: Scope, receive: Receive, send: Send, announced: int | None) -> None:
        most = self._max_body(scope["path"].removeprefix(scope.get("root_path", ""))) or MAX_BODY
        held = None if announced is not None and announced <= SMALL else _Held(self, receive)
        try:
            if announced is not None and announced > most:
                raise too_large(most)
            body = await read_body(held or receive, most, self._within(scope))
            await self._app(scope, Replay(body, receive), send)
        except BodyRefused as refused:
            if refused.answer:
                await self._refuse(refused.answer, receive, send, refused.more)
        finally:
            if held:
                held.release()

    def hold(self, size: int) -> None:
        """Count bytes of a large body in memory; BodyRefused when there are too many."""
        self._held += size
        if self._held > self._max_held:
            raise BodyRefused(our_trouble("Too much is being received right now", last=True))

    def release(self, size: int) -> None:
        """They are gone."""
        self._held -= size


class _Held:
    """A ``receive`` that counts what it brings."""

    def __init__(self, guard: Guard, receive: Receive) -> None:
        self._guard, self._receive = guard, receive
        self._size = 0

    async def __call__(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        size = len(message.get("body", b""))
        self._size += size
        self._guard.hold(size)
        return message

    def release(self) -> None:
        self._guard.release(self._size)


def look_at_head(scope: Scope) -> tuple[int | None, Answer | None]:
    """The announced length of the body, and what is wrong with path and headers, as the answer to it.

    Two lengths, or a length beside chunks, let one request hide in another (RFC 9112, 6.3): some parsers pass them.
    """
    headers = scope["headers"]
    size = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    announced, plain, chunked = None, True, False
    for name, value in headers:
        size += len(name) + len(value) + 4
        if name == b"content-length":
            plain = plain and announced is None and value.isdigit()
            announced = int(value[:19]) if plain else None
        elif name == b"transfer-encoding":
            plain, chunked = plain and not chunked, True
    if scope.get("http_version", "1.1") not in VERSIONS:
        return announced, problem(505, "Speak HTTP/1.1", last=True)
    if len(headers) > MAX_HEADERS or size > MAX_HEAD_BYTES:
        detail = f"At most {MAX_HEADERS} headers and {MAX_HEAD_BYTES} bytes of them are taken"
        return announced, problem(431, detail, last=True)
    if not plain or (chunked and announced is not None):
        return announced, problem(400, "The request does not say plainly where its body ends", last=True)
    return announced, None
