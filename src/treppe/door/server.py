"""One HTTP server in one process: uvicorn, watched, and stopped by an event."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, Literal

import uvicorn

from treppe.config import Web
from treppe.door.answers import App, Take
from treppe.door.guard import WATCHED
from treppe.door.protocol import protocol
from treppe.door.watched import Keeper
from treppe.errors import ConfigError

KEEP_ALIVE: Final = 15
"""Seconds that a connection may wait for its next request."""

GRACE: Final = 10
"""Seconds that running requests get to end when the server stops."""

MOST_RECEIVED: Final = 256 << 20
"""No request is longer on the wire, whatever its body's limit."""


def serve(
    app: App,
    web: Web,
    ready: Callable[[str, int], None] | None = None,
    stop: threading.Event | None = None,
    sock: socket.socket | None = None,
    parser: Literal["auto", "httptools", "h11"] = "auto",
    shortcuts: Mapping[bytes, Take] | None = None,
) -> None:
    """Serve until *stop* is set (or, without one, until SIGINT or SIGTERM in the main thread); then drain and return.

    *ready* is told host and port once connections are accepted; port 0 takes a free one. Runs in any thread.
    ConfigError when the address cannot be had. A bound *sock* may be handed in. ``shortcuts`` take plain POSTs by
    their path, past *app*: see :attr:`treppe.door.webhook.Door.shortcuts`.
    """
    listener = sock or listen(web.host, web.port)
    config = uvicorn.Config(
        app,
        http=protocol(Keeper(web, MOST_RECEIVED), parser, shortcuts),
        ws="none",
        interface="asgi3",
        log_config=None,
        log_level="error",  # a line for each broken request would let strangers fill the log
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )
    host, port = listener.getsockname()[:2]
    _Server(config, (lambda: ready(host, port)) if ready else None, stop).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or ConfigError with the reason in plain words."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        cure = "Choose another port, or stop what listens there" if port else "Choose an address of this machine"
        raise ConfigError("web", f"cannot listen on {host} port {port} ({error.strerror or error})", cure) from error


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None] | None, stop: threading.Event | None) -> None:
        super().__init__(config)
        self._ready, self._stop = ready, stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.lifespan.state[WATCHED] = True
        if self._ready and self.started:
            self._ready()

    async def on_tick(self, counter: int) -> bool:
        if self._stop is not None and self._stop.is_set():
            self.should_exit = True
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, Any, None]:
        """Whoever brings an event of his own looks after signals himself."""
        if self._stop is not None:
            yield
            return
        with super().capture_signals():
            yield
