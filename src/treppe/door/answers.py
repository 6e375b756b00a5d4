"""What the door says: short JSON, and problems as RFC 9457 describes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import msgspec

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HeaderPairs = Sequence[tuple[bytes, bytes]]
"""As ASGI gives them: names in lower case, in the order they came."""

Reply = Callable[["Answer"], object]
"""Called once with the answer to a request."""

Take = Callable[[HeaderPairs, bytes, Reply], None]
"""Takes a whole request, headers and body, and answers it now or later, in the same loop."""

RETRY_AFTER: Final = 5
"""Seconds after which a sender may try again when the trouble is ours."""


class Answer(msgspec.Struct, frozen=True):
    """A whole HTTP answer. ``last`` closes the connection: what still comes on it is not wanted."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    last: bool = False

    async def send(self, send: Send) -> None:
        """Write it."""
        await send(self.head())
        await send({"type": "http.response.body", "body": self.body})

    def wire(self, more: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
        """The same as HTTP/1.1 with *more* headers, for where there is no ASGI.

        >>> Answer(200).wire()
        b'HTTP/1.1 200 OK\\r\\ncontent-length: 0\\r\\n\\r\\n'
        """
        lines = b"".join([b"%b: %b\r\n" % pair for pair in more])
        head = _head_on_the_wire(self.status, self.headers, self.last)
        return b"%b%bcontent-length: %d\r\n\r\n%b" % (head, lines, len(self.body), self.body)

    def head(self) -> MutableMapping[str, Any]:
        """The ASGI message that begins it."""
        length = (b"content-length", str(len(self.body)).encode())
        close = ((b"connection", b"close"),) if self.last else ()
        return {"type": "http.response.start", "status": self.status, "headers": [*self.headers, length, *close]}


def accepted(status: int, **fields: Any) -> Answer:
    """The answer to a webhook that is safely stored.

    >>> accepted(202, id="order:1", state="accepted", duplicate=False).body
    b'{"id":"order:1","state":"accepted","duplicate":false}'
    """
    return Answer(status, msgspec.json.encode(fields), _JSON)


def problem(
    status: int, detail: str, *headers: tuple[bytes, bytes], last: bool = False, retry_after: int | None = None
) -> Answer:
    """An error in RFC 9457's form; ``detail`` is a sentence for the person who set the sender up.

    >>> problem(404, "There is no source of this name").body
    b'{"title":"Not Found","status":404,"detail":"There is no source of this name"}'
    """
    body = msgspec.json.encode({"title": HTTPStatus(status).phrase, "status": status, "detail": detail})
    wait = () if retry_after is None else ((b"retry-after", str(retry_after).encode()),)
    return Answer(status, body, (*_PROBLEM, *wait, *headers), last)


def our_trouble(detail: str, last: bool = False) -> Answer:
    """503: nothing is wrong with what was sent; the same again in a moment may work."""
    return problem(503, detail, last=last, retry_after=RETRY_AFTER)


@lru_cache(maxsize=256)
def _head_on_the_wire(status: int, headers: tuple[tuple[bytes, bytes], ...], last: bool) -> bytes:
    status_line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    close = b"connection: close\r\n" if last else b""
    return b"".join([status_line, *[b"%b: %b\r\n" % pair for pair in headers], close])


_JSON: Final = ((b"content-type", b"application/json"),)
_PROBLEM: Final = ((b"content-type", b"application/problem+json"), (b"cache-control", b"no-store"))
