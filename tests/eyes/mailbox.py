"""A mail server on loopback that does what a real one does, or what a bad one does."""

from __future__ import annotations

import asyncio
import base64
import email
import email.policy
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from pathlib import Path

TARGET = Path(__file__).parents[1] / "delivery" / "target.pem"  # for target.example and 127.0.0.1, signed by itself


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(TARGET))


class Mailbox:
    """``mails`` are those that were taken, ``logins`` who logged in, ``encrypted`` how each mail came."""

    def __init__(self, tls: str = "", password: str = "", bad: str = "") -> None:
        self.tls, self.password, self.bad = tls, password, bad
        self.mails: list[EmailMessage] = []
        self.to: list[str] = []
        self.logins: list[str] = []
        self.encrypted: list[bool] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(TARGET)

    async def listen(self) -> None:
        context = self.context if self.tls == "smtps" else None
        self.server = await asyncio.start_server(self._welcome, "127.0.0.1", 0, ssl=context)
        self.port = self.server.sockets[0].getsockname()[1]

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            await self._serve(reader, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.bad == "silent":
            await reader.read()
        while self.bad == "drip":
            writer.write(b"2")
            await writer.drain()
            await asyncio.sleep(0.02)
        if self.bad == "busy":
            writer.write(b"421 too busy\r\n")
        else:
            await self._talk(reader, writer)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mailbox\r\n")
        encrypted = self.tls == "smtps"
        while line := await reader.readline():
            verb = line.strip().upper()
            if verb.startswith(b"EHLO"):
                offers = ["AUTH PLAIN LOGIN"] if self.password else []
                offers += ["STARTTLS"] if self.tls == "starttls" and not encrypted else []
                writer.write(
                    "".join(f"250-{offer}\r\n" for offer in ["mailbox", *offers]).encode() + b"250 8BITMIME\r\n"
                )
            elif verb == b"STARTTLS":
                writer.write(b"220 go\r\n")
                await writer.drain()
                await writer.start_tls(self.context)
                encrypted = True
            elif verb.startswith(b"AUTH PLAIN"):
                _, user, given = base64.b64decode(line.split()[2]).decode().split("\0")
                if given != self.password:
                    writer.write(b"535 no\r\n")
                    continue
                self.logins.append(user)
                writer.write(b"235 welcome\r\n")
            elif verb.startswith(b"RCPT"):
                self.to.append(line.strip().decode())
                writer.write(b"550 unknown\r\n" if self.bad == "unknown" else b"250 ok\r\n")
            elif verb == b"DATA":
                writer.write(b"354 go on\r\n")
                raw = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(email.message_from_bytes(raw.removesuffix(b".\r\n"), policy=email.policy.default))
                self.encrypted.append(encrypted)
                writer.write(b"250 taken\r\n")
            elif verb == b"QUIT":
                writer.write(b"221 bye\r\n")
                return
            else:
                writer.write(b"250 ok\r\n")
            await writer.drain()


@contextmanager
def mailbox(tls: str = "", password: str = "", bad: str = "") -> Iterator[Mailbox]:
    """Serve a mailbox in a thread of its own."""
    box, loop = Mailbox(tls, password, bad), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(box.listen(), loop).result(10)
    try:
        yield box
    finally:
        asyncio.run_coroutine_threadsafe(_end(box), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _end(box: Mailbox) -> None:
    box.server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for writer in box.writers:  # a polite end of TLS would wait for a client that has gone
        writer.transport.abort()
    await asyncio.gather(*(writer.wait_closed() for writer in box.writers), return_exceptions=True)
