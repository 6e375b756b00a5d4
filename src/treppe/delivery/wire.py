"""The only place that opens a connection to a target: one request, once, within its bounds.

Nothing is repeated here. aiohttp by itself sends an idempotent method (PUT, GET) a second time when the
connection breaks, also on a fresh one where the first call may have acted; a middleware hides those errors from it.
Calls that must not be repeated never ride on a kept connection either: one that the target has just closed
would end as *maybe sent*, and a human would be asked for nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection

from treppe.delivery.guard import Guard, LookUp, Unsendable, check_url, look_up
from treppe.delivery.redact import clean, scrub
from treppe.delivery.request import Request
from treppe.delivery.verdict import Answer, NoAnswer, Reply

HEAD_LIMIT: Final = 64 * 1024
"""So many decoded bytes of an answer are read; then the connection is closed."""

KEPT: Final = 1.0
"""Seconds a connection may idle before it is used again: long under load, and too short for a target to close it."""

NAMES_KEPT: Final = 5
"""Seconds an address is used again without asking for the name."""

_PIECE: Final = 64 * 1024
_LINE_LIMIT: Final = 64 * 1024  # one long Content-Security-Policy must not make an answer unreadable


class Wire:
    """Sends requests. Connections are kept per event loop and never shared between lists of allowed networks.

    ``tls`` replaces the usual trust in the system's certificates; ``look_up`` the system's resolver.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, look_up: LookUp = look_up) -> None:
        self._tls = tls
        self._look_up = look_up
        self._sessions: dict[_Lane, aiohttp.ClientSession] = {}

    async def exchange(self, request: Request) -> Reply:
        """Send the request and read the head of the answer, all within ``request.limit`` seconds.

        Never raises for what the other side or the network does. Once a status line has come, it stands:
        a slow, endless or broken body does not change it, nor does a cancel that arrives while the body is read.
        """
        started, line = time.monotonic(), _Line()
        try:
            async with asyncio.timeout(request.limit), self._call(request, line) as response:
                return await _read(response, request, started)
        except TimeoutError:
            why = _too_late(request, line)
        except (aiohttp.ClientError, OSError) as error:
            why = _what_broke(error, request)
        return NoAnswer(clean(why), request.url, line.stood, _ms(started))

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        for lane in [lane for lane in self._sessions if lane.loop is loop]:
            await self._sessions.pop(lane).close()

    @contextlib.asynccontextmanager
    async def _call(self, request: Request, line: _Line) -> AsyncIterator[aiohttp.ClientResponse]:
        url = check_url(request.url, request.allow_http)
        session, before = self._session(request), _CURRENT.set(line)
        try:
            response = await session.request(
                request.method,
                url,
                data=_pieces(request.body) if request.body else None,
                headers=[*request.headers, *_length(request)],
                skip_auto_headers=("Content-Type",),
                allow_redirects=False,
            )
        except BaseException:
            line.drop()
            raise
        finally:
            _CURRENT.reset(before)
        try:
            yield response
        finally:
            if response.connection:  # read to its end, it has gone back to the others already
                line.drop()
            response.close()

    def _session(self, request: Request) -> aiohttp.ClientSession:
        lane = _Lane(asyncio.get_running_loop(), request.allow_networks, request.repeatable)
        if lane not in self._sessions:
            self._sessions[lane] = self._open(lane)
        return self._sessions[lane]

    def _open(self, lane: _Lane) -> aiohttp.ClientSession:
        guard = Guard(lane.allow_networks, self._look_up)
        connector = _Connector(
            limit=0,  # whoever claims jobs bounds how many run
            resolver=_Resolver(guard),
            socket_factory=guard.open_socket,
            ttl_dns_cache=NAMES_KEPT,
            ssl=self._tls or True,
            **({"keepalive_timeout": KEPT} if lane.keeps else {"force_close": True}),
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            middlewares=[_only_once],
            max_line_size=_LINE_LIMIT,
            max_field_size=_LINE_LIMIT,
        )


class _Lane(msgspec.Struct, frozen=True):
    loop: asyncio.AbstractEventLoop
    allow_networks: tuple[str, ...]
    keeps: bool


class _Line:
    """The connection of one exchange. While it has not stood, no byte of the request can have left."""

    stood = False
    _transport: asyncio.Transport | None = None

    def stands(self, transport: asyncio.Transport | None) -> None:
        self.stood, self._transport = True, transport

    def drop(self) -> None:
        """End it at once: a polite close would wait for a target that has stopped reading, perhaps for ever."""
        if self._transport:
            self._transport.abort()


_CURRENT: Final[ContextVar[_Line]] = ContextVar("treppe_line")


class _Connector(aiohttp.TCPConnector):
    """Notes the moment when a connection stands, with TLS, and nothing has been written yet."""

    async def connect(self, *args: Any, **options: Any) -> Connection:
        connection = await super().connect(*args, **options)
        _CURRENT.get().stands(connection.transport)
        return connection


class _Resolver(AbstractResolver):
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        found = await self._guard.addresses(host, port)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0) for address in found
        ]

    async def close(self) -> None:
        """Nothing to close."""


class _Broken(aiohttp.ClientConnectionError):
    """A broken connection, under a name that aiohttp does not answer with a second try."""


async def _only_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise  # no connection came about; aiohttp does not repeat these
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Broken(error) from error


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _PIECE):
        yield body[start : start + _PIECE]


def _length(request: Request) -> list[tuple[str, str]]:
    return [] if request.method == "GET" else [("Content-Length", str(len(request.body)))]


async def _read(response: aiohttp.ClientResponse, request: Request, started: float) -> Answer:
    head = await _head(response)
    return Answer(
        response.status,
        request.url,
        tuple((name, clean(scrub(value, request.secrets))) for name, value in response.headers.items()),
        clean(scrub(_text(head, response.charset), request.secrets)),
        _ms(started),
    )


async def _head(response: aiohttp.ClientResponse) -> bytes:
    """The first decoded bytes of the body, as far as they come."""
    head, came = bytearray(), 0
    unpack = _unpacker(response.headers.get("Content-Encoding", ""))
    with contextlib.suppress(aiohttp.ClientError, OSError, zlib.error, asyncio.CancelledError):
        async for piece in response.content.iter_any():
            came += len(piece)
            head += unpack(piece, HEAD_LIMIT - len(head))
            if len(head) >= HEAD_LIMIT or came >= HEAD_LIMIT:
                break
    return bytes(head)


def _unpacker(coding: str) -> Callable[[bytes, int], bytes]:
    """How to read pieces of a body whose sender did not heed ``Accept-Encoding: identity``, within a bound."""
    if coding.lower() in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(wbits=47).decompress
    return lambda piece, most: piece[:most]


def _text(head: bytes, charset: str | None) -> str:
    known = (charset or "").lower()
    return head.decode(known if known in ("iso-8859-1", "windows-1252") else "utf-8", "replace")


def _too_late(request: Request, line: _Line) -> str:
    wanted = "answer from" if line.stood else "connection to"
    return f"no {wanted} {_host(request)} within {request.limit:g} s"


def _what_broke(error: Exception, request: Request) -> str:
    """One sentence. Never the error's own text, which may hold the URL or bytes of an answer."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    said = getattr(cause, "verify_message", "") or getattr(cause, "strerror", "") or getattr(cause, "reason", "")
    because = f" ({said})" if said else ""
    match error:
        case _ if isinstance(cause, Unsendable):
            return str(cause)
        case aiohttp.InvalidURL():
            return "the host of the url is not written like a name or an address"
        case aiohttp.ClientConnectorDNSError():
            return f"the name {_host(request)} has no address{because}"
        case aiohttp.ClientConnectorCertificateError():
            return f"the certificate of {_host(request)} is not trusted{because}"
        case aiohttp.ClientConnectorSSLError():
            return f"no encrypted connection to {_host(request)}{because}"
        case aiohttp.ClientConnectorError():
            return f"no connection to {_host(request)}{because}"
        case aiohttp.ClientResponseError():
            return f"{_host(request)} answered something that is not HTTP"
    return f"the connection to {_host(request)} broke before an answer came"


def _host(request: Request) -> str:
    url = check_url(request.url, request.allow_http)
    return f"{url.host}:{url.port}" if url.explicit_port else str(url.host)


def _ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
