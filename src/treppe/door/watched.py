"""uvicorn's HTTP protocols with the deadlines and caps they lack (Kludex/uvicorn#157 was closed without any).

One connection is watched here: all headers together must be there in time and in bounds, then the whole body in time;
an answer must be taken off our hands in time, and one address may not hold all connections.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final, cast

from treppe.config import Web
from treppe.door.answers import RETRY_AFTER, Answer, our_trouble, problem
from treppe.door.body import too_slow
from treppe.door.guard import MAX_HEAD_BYTES

WRITE_TIMEOUT: Final = 30.0
"""Seconds in which a client must take at least something of a waiting answer."""


class Keeper:
    """Counts the connections of one server. ``most_received`` bounds one request's raw bytes, chunking included."""

    def __init__(self, web: Web, most_received: int) -> None:
        self.header_timeout, self.body_timeout = web.header_timeout, web.body_timeout
        self.most_received = most_received
        self._web = web
        self._open = 0
        self._open_of: Counter[str] = Counter()

    def enter(self, address: str) -> Answer | None:
        """One more; the answer to turn it away with when it is one too many."""
        if self._open >= self._web.max_connections:
            return our_trouble("Too many connections are open", last=True)
        if self._open_of[address] >= self._web.max_connections_per_ip:
            return problem(429, "Too many connections from your address", last=True, retry_after=RETRY_AFTER)
        self._open += 1
        self._open_of[address] += 1
        return None

    def leave(self, address: str) -> None:
        """One less."""
        self._open -= 1
        self._open_of[address] -= 1
        if not self._open_of[address]:
            del self._open_of[address]


class Corked:
    """A transport that lets what is written within one turn of the loop leave in one piece: head and body together.

    What is written to a client that has just gone is dropped here; uvloop would raise.
    """

    __slots__ = ("_loop", "_parts", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self.is_closing = transport.is_closing
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Keep what is small until the turn ends; more goes on at once, so that the client's pace is felt."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)
        if len(data) > _SMALL:
            self._flush()

    def send(self, data: bytes) -> None:
        """Write what is kept and then this, at once: it is a whole answer."""
        if self._parts:
            self._parts.append(data)
            self._flush()
        elif not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Write what is kept, then close."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        data = b"".join(self._parts)
        self._parts.clear()
        if data and not self._transport.is_closing():
            self._transport.write(data)


_SMALL: Final = 4096


class Watched(asyncio.Protocol):
    """Stands before uvicorn's protocol class in the order of inheritance."""

    keeper: Keeper
    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    client: tuple[str, int] | None
    cycle: Any  # uvicorn's request in progress; None before the first

    _address: str | None = None
    _received = 0  # bytes of the request in progress, or of the headers we wait for
    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it in and start the clock, or turn it away."""
        corked: Any = Corked(cast(asyncio.Transport, transport), self.loop)
        super().connection_made(corked)
        address = self.client[0] if self.client else ""
        refusal = self.keeper.enter(address)
        if refusal is not None:
            self._turn_away(refusal)
            return
        self._address = address
        self._late = self.loop.call_later(self.keeper.header_timeout, self._headers_late)

    def data_received(self, data: bytes) -> None:
        """Let uvicorn read it; then see whether we still wait for headers."""
        before = self.cycle
        self._feed(data)
        cycle = self.cycle
        if self.transport.is_closing():
            return
        if cycle is not before:
            self._received = len(data)
            self._stop_waiting()
            if cycle.more_body and not cycle.response_complete:
                self._late = self.loop.call_later(self.keeper.body_timeout, self._body_late)
        elif cycle is None or cycle.response_complete:
            self._wait_for_headers(len(data))
        else:
            self._go_on_with_the_body(len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        super().connection_lost(exc)
        self._stop_waiting()
        self._stop_being_stuck()
        if self._address is not None:
            self.keeper.leave(self._address)
            self._address = None

    def pause_writing(self) -> None:
        """The client does not read: it gets a while, not for ever."""
        super().pause_writing()
        self._stuck = self.loop.call_later(WRITE_TIMEOUT, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._stop_being_stuck()

    def _feed(self, data: bytes) -> None:
        super().data_received(data)

    def _unsupported_upgrade_warning(self) -> None:
        """Nobody needs to hear of it."""

    def _wait_for_headers(self, size: int) -> None:
        if self._late is None:
            self._received = 0
            self._late = self.loop.call_later(self.keeper.header_timeout, self._headers_late)
        self._received += size
        if self._received > MAX_HEAD_BYTES:
            self._turn_away(problem(431, f"At most {MAX_HEAD_BYTES} bytes of headers are taken", last=True))

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _stop_being_stuck(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _go_on_with_the_body(self, size: int) -> None:
        self._received += size
        if not self.cycle.more_body:
            self._stop_waiting()
        elif self._received > self.keeper.most_received:
            self.transport.abort()

    def _headers_late(self) -> None:
        if self._received:
            self._turn_away(too_slow("head", self.keeper.header_timeout))
        else:
            self.transport.close()

    def _body_late(self) -> None:
        if self.cycle.response_started:  # somebody answered without waiting for all of it
            self.transport.close()
        else:
            self._turn_away(too_slow("body", self.keeper.body_timeout))

    def _turn_away(self, answer: Answer) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer.wire())
            self.transport.close()
