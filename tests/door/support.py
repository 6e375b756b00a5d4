"""Requests as senders make them, and a way to ask an ASGI app without a server."""

import asyncio
import base64
import hmac
import json
from dataclasses import dataclass, field

from treppe.config import Destination, Secret, Source

SECRET = b"hush"
DESTINATIONS = {name: Destination(name, f"https://{name}.example/in") for name in ("crm", "mail")}


@dataclass
class Reply:
    """What an app answered."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Sent:
    """A request on its way: pieces of a body, and what the sender does in the end."""

    method: str = "POST"
    path: str = "/in/shop"
    headers: list = field(default_factory=list)
    pieces: tuple = (b"",)
    ends: bool = True  # False: it stays connected and sends nothing more
    leaves: bool = False  # it disconnects before the end
    root_path: str = ""
    client: tuple | None = ("192.0.2.1", 1234)
    type: str = "http"
    version: str = "1.1"

    def scope(self):
        return {
            "type": self.type,
            "http_version": self.version,
            "method": self.method,
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "root_path": self.root_path,
            "headers": self.headers,
            "client": self.client,
        }


async def asked(app, sent):
    """Call an ASGI app once; None when it answered nothing."""
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in sent.pieces]
    if sent.leaves:
        messages.append({"type": "http.disconnect"})
    elif sent.ends:
        messages[-1]["more_body"] = False
    replies = []

    async def receive():
        if not messages:
            await asyncio.Event().wait()
        return messages.pop(0)

    async def send(message):
        replies.append(message)

    await app(sent.scope(), receive, send)
    if not replies:
        return None
    assert replies[-1].get("more_body", False) is False
    body = b"".join(message.get("body", b"") for message in replies[1:])
    reply = Reply(replies[0]["status"], dict(replies[0]["headers"]), body)
    assert int(reply.headers[b"content-length"]) == len(body)
    return reply


def ask(app, sent):
    """The same from outside any loop."""
    return asyncio.run(asked(app, sent))


def signed(body, *headers, secret=SECRET, event_id=b"e1", topic=b"orders/paid", path="/in/shop"):
    """A webhook as Shopify sends it."""
    signature = base64.b64encode(hmac.digest(secret, body, "sha256"))
    own = [(b"x-shopify-event-id", event_id), (b"x-shopify-topic", topic), (b"x-shopify-shop-domain", b"a.example")]
    fixed = [(b"content-type", b"application/json"), (b"x-shopify-hmac-sha256", signature)]
    return Sent(path=path, headers=[pair for pair in own if pair[1]] + fixed + list(headers), pieces=(body,))


def shop(**fields):
    fields = {"preset": "shopify", "secrets": (Secret("plain:hush"),), "send_to": ("crm",)} | fields
    return Source("shop", **fields)
