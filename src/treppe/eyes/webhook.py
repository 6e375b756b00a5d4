"""The webhook channel: one signed POST per message, as Standard Webhooks describes it.

The address is checked like a destination's (``delivery.guard``); redirects are not followed.
Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING, Final

import msgspec

from treppe.config import Alert
from treppe.config.parse import open_secret
from treppe.errors import ConfigError
from treppe.eyes.episode import Message
from treppe.eyes.words import iso

if TYPE_CHECKING:
    from treppe.delivery.request import Request

LIMIT: Final = 20.0
"""Seconds for one whole delivery."""


def post(alert: Alert, url: str, message: Message, now: float) -> None:
    """Post *message* to *url*; raises :class:`OSError` unless the answer is a 2xx."""
    from treppe.delivery.request import Request

    secret = None if alert.secret is None else open_secret(alert.secret)
    content = body(message, now)
    request = Request(
        "POST",
        url,
        tuple(signed(message.id, content, secret, now).items()),
        content,
        limit=LIMIT,
        allow_networks=alert.allow_networks,
        allow_http=alert.allow_http,
    )
    asyncio.run(_exchange(request))


def body(message: Message, now: float) -> bytes:
    """What is posted: the text for people, the same facts for machines.

    >>> body(Message("msg_1", "first", "s", "t", {"rule": "dead"}), 0.0)
    b'{"type":"treppe.alert","timestamp":"1970-01-01T00:00:00+00:00","data":{"subject":"s","text":"t","rule":"dead"}}'
    """
    data = {"subject": message.subject, "text": message.text, **message.facts}
    return msgspec.json.encode({"type": "treppe.alert", "timestamp": iso(now), "data": data})


def signed(id: str, body: bytes, secret: bytes | None, now: float) -> dict[str, str]:
    """The headers of one message. Without a secret there is no signature.

    >>> signed("msg_1", b"{}", b"whsec_c2VjcmV0", 7.0)["webhook-signature"]
    'v1,kpc+c3TKF+AkpsKazvhWtjYFd+nH8dTYdip8JGhFOXs='
    """
    headers = {"webhook-id": id, "webhook-timestamp": str(int(now)), "content-type": "application/json"}
    if secret is None:
        return headers
    content = f"{id}.{int(now)}.".encode() + body
    mac = hmac.new(_key(secret), content, hashlib.sha256).digest()
    return headers | {"webhook-signature": f"v1,{base64.b64encode(mac).decode()}"}


async def _exchange(request: Request) -> None:
    from treppe.delivery.verdict import NoAnswer
    from treppe.delivery.wire import Wire

    wire = Wire()
    try:
        reply = await wire.exchange(request)
    finally:
        await wire.aclose()
    if isinstance(reply, NoAnswer):
        raise OSError(reply.why)
    if reply.status // 100 != 2:
        raise OSError(f"the receiver answered {reply.status}")


def _key(secret: bytes) -> bytes:
    prefix = b"whsec_"
    if not secret.startswith(prefix):
        return secret
    try:
        return base64.b64decode(secret.removeprefix(prefix), validate=True)
    except binascii.Error:
        cure = "Copy it once more from the receiver"
        raise ConfigError("alert.secret", "what follows whsec_ is not base64", cure) from None
