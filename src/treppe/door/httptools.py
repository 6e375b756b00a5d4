"""uvicorn's protocol for httptools, put right where it differs from HTTP, and a short way past ASGI."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from treppe.door.answers import Answer, Take, problem
from treppe.door.guard import MAX_HEAD_BYTES, MAX_HEADERS, SMALL
from treppe.door.watched import Corked, Watched


class WatchedHttpTools(Watched):
    """What httptools does differently from what HTTP says, put right; and a short way past ASGI.

    The short way is for a plain request that came in one piece: POST to one of ``shortcuts``, with one Content-Length
    and no header that changes what the connection does. Anything else goes uvicorn's way.
    """

    shortcuts: Mapping[bytes, Take]
    headers: list[Any]
    parser: Any
    flow: Any
    pipeline: Any
    server_state: Any
    timeout_keep_alive: float
    timeout_keep_alive_task: asyncio.TimerHandle | None
    url: bytes

    _data = b""
    _head_in = b""
    _again: bytes | None = None
    _take: Take | None = None
    _body: list[bytes]
    _idle_since = 0.0

    def on_message_begin(self) -> None:
        """Remember where the request begins. uvicorn's part of it waits until it is known to go the long way."""
        self.url, self.headers, self._head_in = b"", [], self._data

    def on_header(self, name: bytes, value: bytes) -> None:
        """One more."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Choose the way. Trailers come to the same callback as headers: what comes from now on is no header."""
        if self.parser.should_upgrade():
            return
        self._take = self._shortcut()
        if self._take is None:
            self._go_the_long_way()
        else:
            self._body = []

    def on_body(self, body: bytes) -> None:
        """A piece of it."""
        if self._take is None:
            super().on_body(body)  # type: ignore[misc]
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Not of a request that is read once more."""
        if self._take is not None:
            take, self._take = self._take, None
            self.cycle = Short(self)
            take(self.headers, self._body[0] if len(self._body) == 1 else b"".join(self._body), self.cycle.reply)
        elif not self.parser.should_upgrade():
            super().on_message_complete()  # type: ignore[misc]

    def send_answer(self, answer: Answer) -> None:
        """The answer to a request that went the short way."""
        cast(Corked, self.transport).send(answer.wire(self.server_state.default_headers))
        if answer.last:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        """As uvicorn has it, but with one timer for the life of a connection, not one for each request."""
        self._idle_since = self.loop.time()
        if self.pipeline or self.timeout_keep_alive_task is None:
            super().on_response_complete()  # type: ignore[misc]
        else:
            self.server_state.total_requests += 1
            self.flow.resume_reading()

    def timeout_keep_alive_handler(self) -> None:
        """Close what has been idle for so long; else look again when it may be."""
        busy = self._late is not None or (self.cycle is not None and not self.cycle.response_complete)
        left = self.timeout_keep_alive - (0.0 if busy else self.loop.time() - self._idle_since)
        if left <= 0:
            super().timeout_keep_alive_handler()  # type: ignore[misc]
        else:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer, too."""
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()

    def _unset_keepalive_if_required(self) -> None:
        """It stays: see :meth:`on_response_complete`."""

    def _shortcut(self) -> Take | None:
        take = self.shortcuts.get(self.url)
        if take is None or self._head_in is not self._data or self.parser.get_method() != b"POST":
            return None
        if self.flow.write_paused or (self.cycle is not None and not self.cycle.response_complete):
            return None  # there one waits until the client has read
        named = dict(self.headers)
        if len(named) != len(self.headers) or len(named) > MAX_HEADERS or not _LONG_WAY.isdisjoint(named):
            return None
        length = named.get(b"content-length", b"")
        if not length.isdigit() or int(length) > SMALL or len(self._data) - int(length) > MAX_HEAD_BYTES:
            return None
        return take if self.parser.get_http_version() == "1.1" else None

    def _go_the_long_way(self) -> None:
        url, headers = self.url, self.headers
        super().on_message_begin()  # type: ignore[misc]
        self.url = url
        self.headers += headers
        self.expect_100_continue = any(n == b"expect" and v.lower() == b"100-continue" for n, v in headers)
        super().on_headers_complete()  # type: ignore[misc]
        self.headers = _NOWHERE

    def _feed(self, data: bytes) -> None:
        """Feed the parser; once more where it stopped at an upgrade."""
        self._data = data
        super()._feed(data)
        while self._again is not None:
            self._data, self._again = self._again, None
            super()._feed(self._data)
        if self._take is not None:  # the rest of it comes later
            self._take = None
            self._go_the_long_way()
            for part in self._body:
                super().on_body(part)  # type: ignore[misc]

    def _unsupported_upgrade_warning(self) -> None:
        """The parser stopped at an Upgrade and skips the body, but we may pass over the wish (RFC 9110, 7.8).

        Java's HttpClient wishes for h2c with each POST. So the request is read again without it.
        """
        import httptools

        method, stopped_at = self.parser.get_method(), cast(Exception, sys.exception()).args[0]
        if method == b"CONNECT":
            self._turn_away(problem(405, "This is no proxy", last=True))
            return
        lines = [name + b": " + value + b"\r\n" for name, value in self.headers if name not in _UPGRADE]
        self._again = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, self.url, b"".join(lines)) + self._data[stopped_at:]
        self.parser = httptools.HttpRequestParser(self)


class Short:
    """A request on the short way, where uvicorn would have its cycle."""

    __slots__ = ("_protocol", "disconnected", "keep_alive", "response_complete")
    more_body = response_started = False
    message_event = asyncio.Event()  # nobody waits for it

    def __init__(self, protocol: WatchedHttpTools) -> None:
        self._protocol = protocol
        self.keep_alive = True  # False once the server wants to stop
        self.disconnected = self.response_complete = False

    def reply(self, answer: Answer) -> None:
        """Write the answer, unless there was one or the client is gone."""
        if self.response_complete or self.disconnected:
            return
        self.response_complete = True
        self._protocol.send_answer(answer if self.keep_alive else replace(answer, last=True))


class _Nowhere(list[Any]):
    """Takes headers that nobody shall see."""

    def append(self, item: Any) -> None:
        pass


_NOWHERE: Final = _Nowhere()


_LONG_WAY: Final = frozenset({b"connection", b"expect", b"transfer-encoding", b"upgrade"})
_UPGRADE: Final = frozenset({b"connection", b"upgrade", b"http2-settings"})
