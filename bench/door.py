"""The two processes of the door's measure: `python -m bench.door serve KIND FOLDER` and `… load PORT SECONDS N`.

The server is the one of `treppe up`, with the door behind it or, to compare with, an empty Starlette endpoint. Every
request is a new event of 1 KiB with its own signature, made before the clock starts.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import signal
import sys
import threading
import time
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import share

SECRET = b"bench"
BODY = 1024
WARM = 0.5
MADE_BEFORE = 12_000
"""Requests made before the clock starts, for each second; more are made while it runs."""

FANS = {"door": ("crm",), "fan_out": ("crm", "accounting", "stock", "mail")}
"""The destinations that each event goes to."""


class Load(msgspec.Struct):
    """What the load generator saw. ``cpu`` is the share of a core that it took for itself."""

    answered: int  # warming up included
    per_s: float
    p50_ms: float
    p99_ms: float
    cpu: float


def database_of(folder: Path) -> Path:
    """Where the door of this measure keeps its events."""
    return folder / "door.db"


# The server's side


def serve(kind: str, folder: str) -> None:
    """Serve until SIGTERM; the port is printed once it listens."""
    from treppe.config import Web
    from treppe.door.server import serve

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    web = Web(port=0, max_connections=1000, max_connections_per_ip=1000)
    app = empty_app() if kind == "empty" else door_app(FANS[kind], Path(folder), web)
    serve(app, web, ready=lambda host, port: print(port, flush=True), stop=stop)


def empty_app() -> Any:
    """The least that answers 202."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def empty(request: Any) -> Response:
        return Response(status_code=202)

    return Starlette(routes=[Route("/in/shop", empty, methods=["POST"])])


def door_app(destinations: tuple[str, ...], folder: Path, web: Any) -> Any:
    """The door behind its guard, as `treppe up` puts them together."""
    from treppe.config import Destination, Secret, Source
    from treppe.door.disk import DiskWatch
    from treppe.door.guard import Guard
    from treppe.door.webhook import Door
    from treppe.intake import Batcher, Intake
    from treppe.store.sqlite import SQLiteStore

    store = SQLiteStore(database_of(folder))
    store.migrate()
    targets = {name: Destination(name, f"https://{name}.example/in") for name in destinations}
    source = Source("shop", "shopify", (Secret(f"plain:{SECRET.decode()}"),), send_to=destinations)
    door = Door({"shop": source}, targets, Batcher(Intake(store)), store.journal, disk=DiskWatch(folder))
    return Guard(door, web, door.max_body)


# The load generator's side


def load(port: str, seconds: str, connections: str) -> None:
    """Keep so many connections busy for so long, then print a :class:`Load`."""
    figures = asyncio.run(load_for(int(port), float(seconds), int(connections)))
    print(msgspec.json.encode(figures).decode())


async def load_for(port: int, seconds: float, connections: int) -> Load:
    """The same in this process."""
    fresh = requests_to(port)
    requests = chain(list(islice(fresh, int(MADE_BEFORE * (seconds + WARM)))), fresh)
    loop = asyncio.get_running_loop()
    clients = [
        (await loop.create_connection(lambda: Client(requests), "127.0.0.1", port))[1] for _ in range(connections)
    ]
    await asyncio.sleep(WARM)
    warm = [len(client.times) for client in clients]
    began, busy = time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    took, busy = time.perf_counter() - began, time.process_time() - busy
    times = [took for client, skip in zip(clients, warm, strict=True) for took in client.times[skip:]]
    if broken := sum(client.broken for client in clients):
        raise SystemExit(f"{broken} answers were no 2xx")
    if not times:
        raise SystemExit("there was no answer")
    return Load(
        sum(warm) + len(times), len(times) / took, share(times, 0.5) * 1000, share(times, 0.99) * 1000, busy / took
    )


class Client(asyncio.Protocol):
    """Sends the next request as soon as the last one is answered."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self.times: list[float] = []
        self.broken = 0
        self._requests = requests

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
        if end and len(body) >= length:
            self.broken += not head.startswith(b"HTTP/1.1 2")
            self.times.append(time.perf_counter() - self._began)
            self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self.broken += 1

    def _next(self) -> None:
        self._answer = b""
        self._began = time.perf_counter()
        self._transport.write(next(self._requests))


def requests_to(port: int) -> Iterator[bytes]:
    """Signed webhooks, each with an id and a body of its own."""
    number = 0
    while True:
        number += 1
        body = b'{"id":%d,"customer":{"id":%d},"note":"' % (number, number % 100)
        body += b"x" * (BODY - len(body) - 2) + b'"}'
        signature = base64.b64encode(hmac.digest(SECRET, body, "sha256"))
        yield (
            b"POST /in/shop HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: bench\r\nAccept: */*\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\nX-Shopify-Topic: orders/paid\r\n"
            b"X-Shopify-Shop-Domain: bench.myshopify.example\r\nX-Shopify-Event-Id: 98880550-7158-44d4-%012d\r\n"
            b"X-Shopify-Webhook-Id: b54557e4-bdd9-4b37-%012d\r\nX-Shopify-Hmac-Sha256: %b\r\n\r\n%b"
        ) % (port, len(body), number, number, signature, body)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        load(*sys.argv[2:])
