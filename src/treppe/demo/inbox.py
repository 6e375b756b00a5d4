"""Where alerts arrive: a webhook that checks the signature, and a mail server that takes everything in."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import email
import email.policy
import hashlib
import hmac
import time

from treppe.demo.ledger import Ledger, Told
from treppe.demo.wire import HOST, Answer, Request


class AlertHook:
    """Takes alerts signed by Standard Webhooks (standardwebhooks.com); ``secret`` is ``whsec_…``."""

    def __init__(self, ledger: Ledger[Told], secret: str) -> None:
        self._ledger = ledger
        self._key = base64.b64decode(secret.removeprefix("whsec_"))

    async def handle(self, request: Request) -> Answer:
        """204, or 401 when the signature is not genuine."""
        genuine = self._genuine(request)
        text = request.body.decode(errors="replace")
        self._ledger.write(Told(time.time(), "webhook", genuine, text))
        return Answer(204 if genuine else 401)

    def _genuine(self, request: Request) -> bool:
        id, at = request.headers.get("webhook-id", ""), request.headers.get("webhook-timestamp", "")
        signed = f"{id}.{at}.".encode() + request.body
        expected = b"v1," + base64.b64encode(hmac.digest(self._key, signed, hashlib.sha256))
        given = request.headers.get("webhook-signature", "").encode().split(b" ")
        fresh = at.isdigit() and abs(time.time() - int(at)) < 300
        return bool(id) and fresh and any(hmac.compare_digest(expected, one) for one in given)


class MailSink:
    """The smallest SMTP server (RFC 5321) that a mail client is happy with."""

    def __init__(self, ledger: Ledger[Told]) -> None:
        self._ledger = ledger
        self._listener: asyncio.Server | None = None

    async def listen(self) -> int:
        """Listen on a free port and return it."""
        self._listener = await asyncio.start_server(self._talk, HOST, 0)
        return int(self._listener.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Take no more mail."""
        if self._listener:
            self._listener.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 inbox ready\r\n")
        with contextlib.suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            while (verb := (await reader.readuntil(b"\r\n"))[:4].strip().upper()) != b"QUIT":
                writer.write(await self._reply(verb, reader, writer))
                await writer.drain()
            writer.write(b"221 bye\r\n")
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _reply(self, verb: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        if verb != b"DATA":
            return b"250 ok\r\n" if verb in {b"EHLO", b"HELO", b"MAIL", b"RCPT", b"RSET", b"NOOP"} else b"502 no\r\n"
        writer.write(b"354 go on\r\n")
        raw = await reader.readuntil(b"\r\n.\r\n")
        self._ledger.write(Told(time.time(), "mail", True, text_of(raw)))
        return b"250 taken\r\n"


def text_of(raw: bytes) -> str:
    r"""Subject and plain text of a mail as it came over the wire.

    >>> text_of(b"Subject: Two orders are dead\r\n\r\nLook at them.\r\n.\r\n")
    'Two orders are dead\nLook at them.\n'
    """
    unstuffed = raw.removesuffix(b"\r\n.\r\n").replace(b"\r\n..", b"\r\n.")
    message = email.message_from_bytes(unstuffed + b"\r\n", policy=email.policy.default)
    body = message.get_body(("plain",))
    return f"{message['subject']}\n{body.get_content() if body else ''}".replace("\r\n", "\n")
