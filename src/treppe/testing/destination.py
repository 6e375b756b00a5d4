"""A scripted HTTP target: a real server on loopback that behaves exactly as badly as it is told.

The script is played in order, one step per request; afterwards every request gets ``otherwise``
(an empty 200). The ledger keeps every call, answered or not. Only the standard library is needed.

>>> import http.client
>>> with FakeDestination(throttled(after=2), answer(201, b"made")) as crm:
...     connection = http.client.HTTPConnection("127.0.0.1", crm.port)
...     for body in (b"first", b"second"):
...         connection.request("POST", "/contacts", body)
...         got = connection.getresponse()
...         print(got.status, got.getheader("Retry-After"), got.read())
...     connection.close()
429 2 b''
201 None b'made'
>>> [(call.method, call.path, call.body, call.step) for call in crm.calls]
[('POST', '/contacts', b'first', 'answer 429'), ('POST', '/contacts', b'second', 'answer 201')]
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import socket
import ssl
import struct
import threading
import time
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Self, cast

_HEAD_LIMIT: Final = 1 << 20
_BLOCK: Final = b"." * 65536


@dataclass(frozen=True, slots=True)
class Call:
    """One line of the ledger. ``at`` is in Unix seconds; ``connection`` numbers the TCP connections from 1."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    at: float
    connection: int
    step: str

    def header(self, name: str) -> str | None:
        """The value of the first header of that name, in any case, or None."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request on its connection, as a step sees it."""

    writer: asyncio.StreamWriter
    released: asyncio.Event

    async def send(self, data: bytes) -> None:
        """Write *data* and wait until the other side takes it."""
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """End the connection with a RST: no answer, no goodbye."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one request. With ``reads=False`` it is played before the body is read."""

    name: str
    play: Callable[[Visit], Awaitable[None]]
    reads: bool = True


def answer(status: int = 200, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Step:
    """A complete answer; the connection stays open for the next request."""
    head = _head(status, {"Content-Length": str(len(body)), **(headers or {})})
    return Step(f"answer {status}", lambda visit: visit.send(head + body))


def throttled(after: int | str) -> Step:
    """A 429 with ``Retry-After``."""
    return answer(429, headers={"Retry-After": str(after)})


def moved(to: str) -> Step:
    """A 302 that points to another place."""
    return answer(302, headers={"Location": to})


def hang() -> Step:
    """No answer until :meth:`FakeDestination.release`; then the connection is dropped."""

    async def play(visit: Visit) -> None:
        await visit.released.wait()
        visit.reset()

    return Step("hang", play)


def drop() -> Step:
    """The call was taken, but instead of an answer the connection is reset."""

    async def play(visit: Visit) -> None:
        visit.reset()

    return Step("drop", play)


def cut() -> Step:
    """The connection is reset after the headers, before the body was read."""

    async def play(visit: Visit) -> None:
        visit.reset()

    return Step("cut", play, reads=False)


def stall() -> Step:
    """Nothing is read after the headers until :meth:`FakeDestination.release`; then the connection is dropped."""

    async def play(visit: Visit) -> None:
        await visit.released.wait()
        visit.reset()

    return Step("stall", play, reads=False)


def drip(status: int = 200, every: float = 0.01) -> Step:
    """Status and headers at once, then one byte of the body every so many seconds, for ever."""

    async def play(visit: Visit) -> None:
        await visit.send(_head(status, {"Content-Length": str(1 << 30)}))
        while not visit.released.is_set():
            await visit.send(b".")
            await asyncio.sleep(every)
        visit.reset()

    return Step(f"drip {status}", play)


def endless(status: int = 200) -> Step:
    """A body that never ends, as fast as it is read."""

    async def play(visit: Visit) -> None:
        await visit.send(_head(status, {"Connection": "close"}))
        while not visit.released.is_set():
            await visit.send(_BLOCK)
        visit.reset()

    return Step(f"endless {status}", play)


def bomb(status: int = 200, mebibytes: int = 200) -> Step:
    """A gzip body that is small on the wire and grows to so many MiB of zeros when it is unpacked."""
    body = _zipped_zeros(mebibytes)
    return Step(f"bomb {status}", answer(status, body, {"Content-Encoding": "gzip"}).play)


def raw(data: bytes) -> Step:
    """Exactly these bytes instead of an answer, then the connection ends."""

    async def play(visit: Visit) -> None:
        await visit.send(data)
        visit.writer.close()

    return Step("raw", play)


class FakeDestination:
    """The server: a context manager that listens on a free port of 127.0.0.1.

    ``otherwise`` is played when the script is used up. ``tls`` serves https instead of http.
    """

    def __init__(self, *script: Step, otherwise: Step | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._script = deque(script)
        self._otherwise = otherwise or answer(200)
        self._tls = tls
        self._calls: list[Call] = []
        self._called = threading.Condition()
        self._numbers = itertools.count(1)
        self._visitors: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._place = _bound(0)
        self.port: int = self._place.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-destination", daemon=True)
        self._thread.start()
        self._released = asyncio.Event()
        self._in_loop(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._place.close()

    @property
    def url(self) -> str:
        """Where it listens, with a slash at the end."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/"

    @property
    def calls(self) -> tuple[Call, ...]:
        """The ledger: every call so far, in the order they came."""
        with self._called:
            return tuple(self._calls)

    def wait_for(self, n: int, within: float = 5.0) -> tuple[Call, ...]:
        """The ledger as soon as it holds *n* calls; ``AssertionError`` after so many seconds."""
        with self._called:
            if not self._called.wait_for(lambda: len(self._calls) >= n, within):
                raise AssertionError(f"{len(self._calls)} of {n} calls came within {within:g} s")
            return tuple(self._calls)

    def then(self, *script: Step) -> None:
        """Add to the script."""
        with self._called:
            self._script.extend(script)

    def release(self) -> None:
        """Let go of everything that hangs, now and from now on."""
        self._loop.call_soon_threadsafe(self._released.set)

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """While this lasts, the port is closed: connections are refused and open ones end."""
        self._in_loop(self._leave())
        try:
            yield
        finally:
            self._in_loop(self._listen())

    def _in_loop(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._welcome, sock=_bound(self.port), ssl=self._tls, limit=_HEAD_LIMIT, backlog=512
        )

    async def _leave(self) -> None:
        self._server.close()
        leaving = tuple(self._visitors)
        for visitor in leaving:
            visitor.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._visitors.add(visitor := cast("asyncio.Task[None]", asyncio.current_task()))
        number = next(self._numbers)
        try:
            while not writer.is_closing():
                await self._serve(reader, writer, number)
            await writer.wait_closed()
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self._visitors.discard(visitor)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        method, path, headers = _parse(await reader.readuntil(b"\r\n\r\n"))
        step = self._next_step()
        body = await _body(reader, dict(_lower(headers))) if step.reads else b""
        with self._called:
            self._calls.append(Call(method, path, headers, body, time.time(), number, step.name))
            self._called.notify_all()
        await step.play(Visit(writer, self._released))
        if ("connection", "close") in _lower(headers):
            writer.close()

    def _next_step(self) -> Step:
        with self._called:
            return self._script.popleft() if self._script else self._otherwise


def _bound(port: int) -> socket.socket:
    """A socket bound to the port but not listening: it keeps the port ours while it is closed for callers."""
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    for option in ("SO_REUSEADDR", "SO_REUSEPORT"):
        if hasattr(socket, option):
            place.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
    place.bind(("127.0.0.1", port))
    return place


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Whatever"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _parse(head: bytes) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    return method, path, tuple((name, value.strip()) for name, _, value in pairs)


def _lower(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name.lower(), value.lower()) for name, value in headers)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body


@functools.cache
def _zipped_zeros(mebibytes: int) -> bytes:
    squeeze = zlib.compressobj(6, wbits=31)
    zeros = bytes(1 << 20)
    return b"".join([*(squeeze.compress(zeros) for _ in range(mebibytes)), squeeze.flush()])
