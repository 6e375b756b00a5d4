"""``POST /v1/drain?budget=25s``: cron's door. A call works off what is due and says what it did.

Any of several secrets opens it, compared in constant time. Overlapping calls are safe: claims are fenced. It
answers 200 also when jobs failed (a failing cron call would hide the real state) and 503 only for the store.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from treppe.config import Secret
from treppe.config.parse import duration, open_secret
from treppe.door.answers import Answer, Receive, Scope, Send, our_trouble, problem
from treppe.errors import ConfigError, StoreError

log = logging.getLogger("treppe.door")

DEFAULT_BUDGET: Final = "25s"
MOST: Final = 600.0
AT_ONCE: Final = 4
"""Drains that run at once in one process; more get 429."""


class Tick:
    """The ASGI app. ``drain`` takes a budget in seconds and blocks; it runs in a thread."""

    def __init__(self, drain: Callable[[float], dict[str, Any]], secrets: Iterable[Secret]) -> None:
        self._drain = drain
        self._secrets = tuple(secrets)
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        answer = await self._answer(scope)
        await answer.send(send)

    async def _answer(self, scope: Scope) -> Answer:
        if scope["method"] != "POST":
            return problem(405, "Call it with POST", (b"allow", b"POST"))
        if not self._may(scope):
            challenge = (b"www-authenticate", b"Bearer")
            return problem(401, "A bearer token is needed: web.drain_secret in treppe.toml", challenge)
        try:
            budget = self._budget(scope)
        except ConfigError as error:
            return problem(400, str(error))
        if self._running >= AT_ONCE:
            return problem(429, "Enough drains are running already", retry_after=5)
        return await self._work(budget)

    async def _work(self, budget: float) -> Answer:
        self._running += 1
        try:
            done = await asyncio.to_thread(self._drain, budget)
        except StoreError as error:
            log.warning("a drain found the store in trouble: %s", error)
            return our_trouble("The store does not answer. Nothing is lost; call again later")
        finally:
            self._running -= 1
        return Answer(200, msgspec.json.encode(done), ((b"content-type", b"application/json"),))

    def _may(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        kind, _, token = given[0].partition(b" ")
        matches = [hmac.compare_digest(token.strip(), secret) for secret in self._open_secrets()]
        return kind.lower() == b"bearer" and any(matches)

    def _open_secrets(self) -> Iterator[bytes]:
        """The secrets as they are now; one that cannot be read opens nothing, and the others still do."""
        for secret in self._secrets:
            try:
                yield open_secret(secret)
            except ConfigError as error:
                log.error("a drain secret cannot be read: %s", error)

    def _budget(self, scope: Scope) -> float:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        try:
            return duration(query.get("budget", [DEFAULT_BUDGET])[0], least=1.0, most=MOST)
        except ConfigError as error:
            raise ConfigError("budget", error.problem, error.cure) from None
