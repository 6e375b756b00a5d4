"""Everything that listens, behind one guard: the door, the board, cron's door, health."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from treppe.config import Settings
from treppe.door.answers import Answer, App, Receive, Scope, Send, Take, our_trouble, problem
from treppe.door.disk import DiskWatch
from treppe.door.guard import Guard
from treppe.door.tick import Tick
from treppe.door.webhook import PREFIX, Door
from treppe.errors import StoreError
from treppe.eyes.board import board
from treppe.eyes.measure import Figures
from treppe.intake import Batcher, Intake
from treppe.store.protocol import Store

BOARD = "/board"


def front(settings: Settings, store: Store, figures: Figures, drain: Callable[[float], dict[str, Any]]) -> Entrance:
    """What ``treppe up`` serves."""
    batcher = Batcher(Intake(store))
    path = getattr(store, "path", None)
    disk = DiskWatch(Path(path).parent) if path else None
    door = Door(settings.sources, settings.destinations, batcher, store.journal, web=settings.web, disk=disk)
    rooms = Front(door, board(store, settings, figures), Tick(drain, settings.web.drain_secrets), store)
    return Entrance(Guard(rooms, settings.web, door.max_body), door.shortcuts, batcher.close)


class Entrance(NamedTuple):
    """The ASGI app, the short way into its door, and what to call when it has ended."""

    app: App
    shortcuts: Mapping[bytes, Take]
    close: Callable[[], None]


class Front:
    """Sends each request to its room by the beginning of its path."""

    def __init__(self, door: App, board: App, tick: App, store: Store) -> None:
        self._door, self._board, self._tick, self._store = door, board, tick, store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path: str = scope["path"] if scope["type"] == "http" else ""
        if path.startswith(PREFIX):
            await self._door(scope, receive, send)
        elif path == BOARD or path.startswith(BOARD + "/"):
            await self._board(_below(scope, BOARD), receive, send)
        elif path == "/v1/drain":
            await self._tick(scope, receive, send)
        elif scope["type"] == "http":
            await (await self._small(path)).send(send)

    async def _small(self, path: str) -> Answer:
        if path == "/":
            return Answer(307, headers=((b"location", b"board/"),))
        if path == "/healthz":
            return _OK
        if path == "/readyz":
            return await self._ready()
        return problem(404, "There is nothing here. Webhooks go to /in/{source}, people to /board/")

    async def _ready(self) -> Answer:
        """Ready means that the store can be read."""
        try:
            await asyncio.to_thread(self._store.journal.get, "readyz")
        except StoreError as error:
            return our_trouble(f"The store does not answer: {error}")
        return _OK


_OK = Answer(200, msgspec.json.encode({"status": "ok"}), ((b"content-type", b"application/json"),))


def _below(scope: Scope, prefix: str) -> Scope:
    """The scope for an app that is mounted at *prefix*."""
    return {**scope, "root_path": scope.get("root_path", "") + prefix}
