"""Reading a request's body with an end in sight: a number of bytes and a time, both in total."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, Final

from treppe.door.answers import Answer, Receive, Send, problem

LINGER: Final = 2.0
"""Seconds that a refused sender may go on sending, so that it can read our answer instead of a reset."""


class BodyRefused(Exception):
    """The body will not be taken; the answer says why. ``None``: the sender has gone, there is nobody to answer.

    ``more`` says that the rest of the body may still come.
    """

    def __init__(self, answer: Answer | None, more: bool = True) -> None:
        super().__init__()
        self.answer, self.more = answer, more


class Replay:
    """A ``receive`` whose body has been read already; afterwards it goes on as the server's own."""

    __slots__ = ("_given", "_receive", "body")

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.body = body
        self._receive = receive
        self._given = False

    async def __call__(self) -> MutableMapping[str, Any]:
        """The whole body first, then what the server says."""
        if self._given:
            return await self._receive()
        self._given = True
        return {"type": "http.request", "body": self.body, "more_body": False}


async def read_body(receive: Receive, most: int, within: float | None) -> bytes:
    """All of it, or BodyRefused: more than *most* bytes, or not there *within* seconds (None: the server watches)."""
    if within is None:
        return await _all_of_it(receive, most)
    try:
        async with asyncio.timeout(within):
            return await _all_of_it(receive, most)
    except TimeoutError:
        raise BodyRefused(too_slow("body", within)) from None


async def refuse(answer: Answer, receive: Receive, send: Send) -> None:
    """Answer, and close only after a moment in which the rest of the body is thrown away.

    Closing at once would reset the connection while the sender still writes, and the answer would be lost.
    """
    await send(answer.head())
    await send({"type": "http.response.body", "body": answer.body, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            while (message := await receive())["type"] == "http.request" and message.get("more_body"):
                pass
    await send({"type": "http.response.body", "body": b""})


def too_large(most: int, more: bool = True) -> BodyRefused:
    """413, and the connection ends."""
    return BodyRefused(problem(413, f"The body may have at most {most} bytes", last=True), more)


def too_slow(what: str, within: float) -> Answer:
    """408, and the connection ends."""
    return problem(408, f"The {what} was not there within {within:g} s", last=True)


async def _all_of_it(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise BodyRefused(None)
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > most:
            raise too_large(most, more)
        parts.append(part)
        if not more:
            return parts[0] if len(parts) == 1 else b"".join(parts)
