"""What the delivery tests share: claims, destinations on loopback, and one way to run a delivery."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from treppe.config import Destination, Probe
from treppe.delivery.http import Delivery
from treppe.job import Claim, Outcome, Repeat
from treppe.testing.destination import FakeDestination

TARGET = Path(__file__).parent / "target.pem"  # for target.example and 127.0.0.1, signed by itself
LOOPBACK = ("127.0.0.0/8",)
T = TypeVar("T")


def claim(destination: Destination, payload: bytes = b'{"order": 1}', **fields: Any) -> Claim:
    """A claim of a job for the destination, as a worker gets it."""
    known = {
        "seq": 1,
        "id": "invoice:42",
        "token": 3,
        "worker": 7,
        "queue": destination.pace_queue,
        "content_type": "application/json",
        "key": None,
        "repeat": Repeat.SAFE,
        "claims": 1,
        "charged": 0,
        "attempts": 5,
        "crashes": 3,
        "due_at": 0.0,
        "claimed_at": 0.0,
        "expires_at": 1e9,
        "deadline_at": None,
    }
    return Claim(task=destination.task, payload=payload, **(known | fields))


def destination(target: FakeDestination | str, **fields: Any) -> Destination:
    """A destination that may reach loopback over plain http."""
    url = target if isinstance(target, str) else target.url + "orders"
    known = {"timeout": 5.0, "allow_networks": LOOPBACK, "allow_http": True}
    return Destination("crm", url, **(known | fields))


def with_delivery(to: Destination, work: Callable[[Delivery], Awaitable[T]], **parts: Any) -> T:
    """Run *work* with a delivery in an event loop of its own, and close it."""

    async def run() -> T:
        delivery = Delivery({to.name: to}, **parts)
        try:
            return await work(delivery)
        finally:
            await delivery.aclose()

    return asyncio.run(run())


def deliver(
    to: Destination, payload: bytes = b'{"order": 1}', parts: dict[str, Any] | None = None, **fields: Any
) -> Outcome:
    """One delivery from beginning to end."""
    return with_delivery(to, lambda delivery: delivery.run(claim(to, payload, **fields)), **parts or {})


def deliver_each(to: Destination, n: int, **fields: Any) -> list[Outcome]:
    """So many deliveries one after the other, over the same pool of connections."""

    async def work(delivery: Delivery) -> list[Outcome]:
        return [await delivery.run(claim(to, **fields)) for _ in range(n)]

    return with_delivery(to, work)


def probe(to: Destination, path: str) -> Outcome:
    """One probe of the destination."""
    probed = msgspec.structs.replace(to, probe=Probe(path))
    return with_delivery(probed, lambda delivery: delivery.probe(probed))


def detail(outcome: Outcome) -> dict[str, Any]:
    """What is kept for people."""
    found: dict[str, Any] = msgspec.json.decode(outcome.detail or b"{}")
    return found


def resolver(*answers: Sequence[str]) -> tuple[Callable[[str, int], Awaitable[Sequence[str]]], list[str]]:
    """A resolver that gives one answer after the other (the last for ever), and the names it was asked for."""
    asked: list[str] = []

    async def look_up(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return look_up, asked


def server_tls() -> ssl.SSLContext:
    """TLS as target.example shows it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TARGET)
    return context


def trusting() -> ssl.SSLContext:
    """Trust in target.example."""
    return ssl.create_default_context(cafile=str(TARGET))
