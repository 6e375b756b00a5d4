"""How many webhooks a second the door puts on disk, beside what an empty Starlette endpoint answers on the same server.

Server and load generator are processes of their own. Every request is a new event of 1 KiB with its own signature.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

SECRET = b"bench"
BODY = 1024
ROUNDS = 3
KINDS = ("empty", "door", "fan_out")


def run(seconds: float = 5.0, connections: int = 32) -> dict[str, Any]:
    """Measure each kind of server in turn, several times; the medians, with the ratio the door has to reach."""
    measured: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS):
        for kind in KINDS:
            measured[kind].append(_measure(kind, seconds, connections))
    middle = {
        f"{kind}_{figure}": median(one[figure] for one in rounds)
        for kind, rounds in measured.items()
        for figure in ("per_s", "p50_ms", "p99_ms")
    }
    return {
        "seconds": seconds,
        "connections": connections,
        "body_bytes": BODY,
        **middle,
        "ratio": middle["door_per_s"] / middle["empty_per_s"],
        "fan_out_ratio": middle["fan_out_per_s"] / middle["empty_per_s"],
    }


def _measure(kind: str, seconds: float, connections: int) -> dict[str, float]:
    with _server(kind) as port:
        command = [sys.executable, "-m", "bench.door", "load", kind, str(port), str(seconds), str(connections)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=seconds * 10 + 60)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


@contextmanager
def _server(kind: str) -> Iterator[int]:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        command = [sys.executable, "-m", "bench.door", "serve", kind, folder]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=30)
            server.stdout.close()


# The server's side


def _serve(kind: str, folder: str) -> None:
    from treppe.config import Web
    from treppe.door.server import serve

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    web = Web(port=0, max_connections=1000, max_connections_per_ip=1000)
    app = _empty_app() if kind == "empty" else _door_app(kind, folder, web)
    serve(app, web, ready=lambda host, port: print(port, flush=True), stop=stop)


def _empty_app() -> Any:
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def empty(request: Any) -> Response:
        return Response(status_code=202)

    return Starlette(routes=[Route("/in/shop", empty, methods=["POST"])])


def _door_app(kind: str, folder: str, web: Any) -> Any:
    from treppe.config import Destination, Secret, Source
    from treppe.door.disk import DiskWatch
    from treppe.door.guard import Guard
    from treppe.door.webhook import Door
    from treppe.intake import Batcher, Intake
    from treppe.store.sqlite import SQLiteStore

    store = SQLiteStore(Path(folder) / "bench.db")
    store.migrate()
    names = ("crm",) if kind == "door" else ("crm", "accounting", "stock", "mail")
    destinations = {name: Destination(name, f"https://{name}.example/in") for name in names}
    source = Source("shop", "shopify", (Secret(f"plain:{SECRET.decode()}"),), send_to=names)
    disk = DiskWatch(Path(folder))
    door = Door({"shop": source}, destinations, Batcher(Intake(store)), store.journal, disk=disk)
    return Guard(door, web, door.max_body)


# The load generator's side


def _load(kind: str, port: int, seconds: float, connections: int) -> None:
    try:
        import uvloop as loops
    except ImportError:
        loops = asyncio
    print(json.dumps(loops.run(_load_for(port, seconds, connections))))


async def _load_for(port: int, seconds: float, connections: int) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    requests = _requests(port)
    clients = []
    for _ in range(connections):
        _, client = await loop.create_connection(lambda: _Client(requests), "127.0.0.1", port)
        clients.append(client)
    await asyncio.sleep(0.5)  # warm
    for client in clients:
        client.times.clear()
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - began
    times = sorted(each for client in clients for each in client.times)
    refused = sum(client.refused for client in clients)
    if refused or not times:
        raise SystemExit(f"{refused} answers were not 2xx")
    share = len(times) / took
    return {"per_s": share, "p50_ms": times[len(times) // 2] * 1000, "p99_ms": times[int(len(times) * 0.99)] * 1000}


class _Client(asyncio.Protocol):
    """Sends the next request as soon as the last one is answered."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self.times: list[float] = []
        self.refused = 0
        self._requests = requests

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
        if end and len(body) >= length:
            self.refused += not head.startswith(b"HTTP/1.1 2")
            self.times.append(time.perf_counter() - self._began)
            self._next()

    def _next(self) -> None:
        self._answer = b""
        self._began = time.perf_counter()
        self._transport.write(next(self._requests))


def _requests(port: int) -> Iterator[bytes]:
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
    role, *arguments = sys.argv[1:] or ["run"]
    if role == "serve":
        _serve(*arguments)
    elif role == "load":
        _load(arguments[0], int(arguments[1]), float(arguments[2]), int(arguments[3]))
    else:
        print(json.dumps(run(*map(float, arguments[:1])), indent=1))
