"""Just enough HTTP/1.1 for the outside world: a server that may also stay silent, and a client with kept connections.

A stand-in must be able to do what no well-behaved server does: refuse connections, read a request and never
answer, act and hang up. So this speaks HTTP (RFC 9112) itself, on the streams of the standard library.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

HOST = "127.0.0.1"
MAX_BODY = 8 * 1024 * 1024


class Request(NamedTuple):
    """One call. Header names are lower case; ``gone`` waits until the caller hangs up."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    gone: Callable[[], Awaitable[object]]


class Answer(NamedTuple):
    """What is sent back. Both sides use it."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @property
    def good(self) -> bool:
        """True for a 2xx.

        >>> Answer(202).good, Answer(429).good
        (True, False)
        """
        return 200 <= self.status < 300


Handler = Callable[[Request], Awaitable[Answer | None]]
"""Answers a request, or returns None to hang up without a word."""


class Server:
    """Serves one handler on one port; it can stop listening and start again there."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._open: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def listen(self, port: int = 0) -> int:
        """Listen on *port* (0 = any free one, or the one of last time) and return it."""
        self._listener = await asyncio.start_server(self._serve, HOST, port or self.port, backlog=512)
        self.port = int(self._listener.sockets[0].getsockname()[1])
        return self.port

    def refuse(self) -> None:
        """Close the listening socket and drop every connection: the next one is refused by the system."""
        if self._listener:
            self._listener.close()
        for writer in list(self._open.values()):
            writer.transport.abort()

    async def close(self) -> None:
        """Refuse, and wait until nobody is served any more."""
        self.refuse()
        await asyncio.gather(*filter(None, self._open))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._open[task] = writer
        try:
            with contextlib.suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError):
                while await self._one_call(reader, writer):
                    pass
        finally:
            del self._open[task]
            writer.transport.abort() if writer.transport.get_write_buffer_size() == 0 else writer.close()

    async def _one_call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        start, headers = await _read_head(reader)
        method, path, _version = start.split(" ", 2)
        body = await _read_body(reader, headers)
        answer = await self._handler(Request(method, path, headers, body, lambda: _end_of(reader)))
        if answer is None:
            return False
        start = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"
        writer.write(_render(start, answer.headers, answer.body))
        await writer.drain()
        return headers.get("connection", "").lower() != "close"


class Client:
    """Calls one port, keeping its connections open."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._kept: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call(
        self, method: str, path: str, headers: Mapping[str, str] = {}, body: bytes = b"", patience: float = 10.0
    ) -> Answer:
        """Make one call. Raises ``OSError`` (``TimeoutError``, after *patience* seconds, and ``ConnectionError`` are).

        No hidden retry: what happened to a call that failed, nobody knows.
        """
        async with asyncio.timeout(patience), self._connection() as (reader, writer):
            writer.write(_render(f"{method} {path} HTTP/1.1", {"host": f"{HOST}:{self.port}", **headers}, body))
            await writer.drain()
            start, answered = await _read_head(reader)
            return Answer(int(start.split(" ", 2)[1]), await _read_body(reader, answered), answered)

    async def close(self) -> None:
        """Drop the kept connections."""
        while self._kept:
            _reader, writer = self._kept.pop()
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        pair = self._pick() or await asyncio.open_connection(HOST, self.port)
        try:
            yield pair
        except BaseException as error:
            pair[1].transport.abort()
            if isinstance(error, (EOFError, ValueError)):
                raise ConnectionResetError("the other side hung up") from error
            raise
        self._kept.append(pair)

    def _pick(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        while self._kept:
            reader, writer = self._kept.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.transport.abort()
        return None


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    pairs = (line.partition(":") for line in lines[1:])
    headers: dict[str, str] = {}
    for name, _, value in pairs:
        known = headers.get(name.lower())
        headers[name.lower()] = value.strip() if known is None else f"{known}\n{value.strip()}"
    return lines[0], headers


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader)
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= MAX_BODY:
        raise ValueError(f"a body of {length} bytes is not read here")
    return await reader.readexactly(length)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        if len(body) + size > MAX_BODY:
            raise ValueError("a body this long is not read here")
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return body


async def _end_of(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(4096):
            pass


def _render(start: str, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = [start, *(f"{name}: {value}" for name, value in headers.items()), f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
