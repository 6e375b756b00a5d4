"""The two processes of the door's measure: `python -m bench.door serve KIND URL` and `… load PORT SECONDS N`.

The server is `treppe up` without a worker or, to compare with, an empty Starlette endpoint on the same server. Every
request is a new event of 1 KiB with its own signature, made before the clock starts.
"""

from __future__ import annotations

import base64
import hmac
import re
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, cast

import msgspec

from bench.figures import share
from treppe.config import Destination, Secret, Settings, Source, Web

SECRET = b"bench"
BODY = 1024
WARM = 0.5
PATIENCE = 30.0
WEB = Web(port=0, max_connections=1000, max_connections_per_ip=1000)
MADE_BEFORE = 12_000
"""Requests made before the clock starts, for each second; more are made while it runs."""

FANS = {"door": ("crm",), "fan_out": ("crm", "accounting", "stock", "mail")}
"""The destinations that each event goes to."""


class Load(msgspec.Struct):
    """What the load generator saw. ``cpu`` is the share of a core that it took for itself."""

    answered: int  # all, also while it warmed up and came to an end
    per_s: float
    p50_ms: float
    p99_ms: float
    cpu: float


# The server's side


def serve(kind: str, url: str) -> None:
    """Serve until SIGTERM, with the store of this URL; the address is printed once it listens."""
    if kind == "empty":
        serve_empty()
    else:
        from treppe.run import up

        up(settings_of(FANS[kind], url), with_worker=False)


def serve_empty() -> None:
    """The same server, with the least behind it that answers 202."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    from treppe.door.server import serve

    async def empty(request: Any) -> Response:
        return Response(status_code=202)

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    app = Starlette(routes=[Route("/in/shop", empty, methods=["POST"])])
    serve(app, WEB, ready=lambda host, port: print(f"http://{host}:{port}/", flush=True), stop=stop)


def settings_of(destinations: tuple[str, ...], url: str) -> Settings:
    """A shop whose events go to these destinations. Nobody delivers them: the door alone is measured."""
    targets = {name: Destination(name, f"https://{name}.example/in") for name in destinations}
    source = Source("shop", "shopify", (Secret(f"plain:{SECRET.decode()}"),), send_to=destinations)
    return Settings(store=url, sources={"shop": source}, destinations=targets, web=WEB)


def port_in(address: bytes) -> str:
    """The port in what the server prints; "" when it printed none."""
    found = re.search(rb"http://[^/ ]*:(\d+)/", address)
    return found[1].decode() if found else ""


# The load generator's side: sockets and a selector, so that it takes less time than any server it is to measure


def load(port: str, seconds: str, connections: str) -> None:
    """Keep so many connections busy for so long, then print a :class:`Load`."""
    fresh = requests_to(int(port))
    before = list(islice(fresh, int(MADE_BEFORE * (float(seconds) + WARM))))
    generator = Generator(int(port), int(connections), chain(before, fresh))
    warm = len(generator.run_for(WARM))
    began, busy = time.perf_counter(), time.process_time()
    times = generator.run_for(float(seconds))
    took, busy = time.perf_counter() - began, time.process_time() - busy
    answered = warm + len(times) + len(generator.finish())
    middle, slowest = share(times, 0.5) * 1000, share(times, 0.99) * 1000
    print(msgspec.json.encode(Load(answered, len(times) / took, middle, slowest, busy / took)).decode())


class Generator:
    """Sends the next request on a connection as soon as the last one is answered."""

    def __init__(self, port: int, connections: int, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._waiting = 0
        for _ in range(connections):
            connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(connection, selectors.EVENT_READ, Talk())
            self._send(connection, self._selector.get_key(connection).data)

    def run_for(self, seconds: float) -> list[float]:
        """Seconds that each answer took, of those that came in this time."""
        return self._run(time.perf_counter() + seconds, go_on=True)

    def finish(self) -> list[float]:
        """Wait for what is still to be answered, and send nothing more."""
        return self._run(time.perf_counter() + PATIENCE, go_on=False)

    def _run(self, until: float, go_on: bool) -> list[float]:
        times: list[float] = []
        while self._waiting and time.perf_counter() < until:
            for key, _ in self._selector.select(PATIENCE):
                connection, talk = cast(socket.socket, key.fileobj), cast(Talk, key.data)
                if talk.is_answered_by(connection.recv(65536)):
                    times.append(time.perf_counter() - talk.began)
                    self._waiting -= 1
                    if go_on:
                        self._send(connection, talk)
        return times

    def _send(self, connection: socket.socket, talk: Talk) -> None:
        talk.answer, talk.began = b"", time.perf_counter()
        connection.sendall(next(self._requests))
        self._waiting += 1


class Talk:
    """What is being said on one connection."""

    __slots__ = ("answer", "began")
    answer: bytes
    began: float

    def is_answered_by(self, data: bytes) -> bool:
        """True once the answer is complete; SystemExit for one that is no 2xx."""
        self.answer += data
        head, end, body = self.answer.partition(b"\r\n\r\n")
        if not data or (end and not head.startswith(b"HTTP/1.1 2")):
            raise SystemExit(f"an answer was no 2xx: {self.answer[:200]!r}")
        return bool(end) and len(body) >= int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")


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
