"""The mail channel: one plain-text mail per message, by the standard library alone.

``smtp://[user@]host[:port]``, ``smtp+starttls://…`` and ``smtps://…``. A try never lasts longer than its limit,
also against a server that sends one byte a minute.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from base64 import b64encode
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from treppe.eyes.episode import Message
from treppe.eyes.plain import line

LIMIT: Final = 20.0
"""Seconds for one whole mail."""

_WELCOME: Final = 235
_PORTS: Final = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


def mail(
    server: str,
    sender: str,
    to: str,
    message: Message,
    *,
    password: str = "",
    tls: ssl.SSLContext | None = None,
    limit: float = LIMIT,
) -> None:
    """Send *message* to the address *to*; raises :class:`OSError` or :class:`smtplib.SMTPException`.

    *server* is the URL from the settings. Certificates are always checked, against *tls* when it is given.
    """
    url, tls = urlsplit(server), tls or ssl.create_default_context()
    with _connected(url, tls, limit) as client:
        if url.scheme == "smtp+starttls":
            client.starttls(context=tls)
        if url.username:
            _log_in(client, unquote(url.username), password)
        client.send_message(letter(sender, to, message), from_addr=sender, to_addrs=[to])


def letter(sender: str, to: str, message: Message) -> EmailMessage:
    """The mail itself. No text from outside can start a header of its own.

    >>> print(letter("t@shop.example", "me@shop.example", Message("1", "first", "a\\nBcc: x", "b"))["Subject"])
    a Bcc: x
    """
    mail = EmailMessage()
    mail["From"], mail["To"] = line(sender), line(to)
    mail["Subject"] = line(message.subject, 200)
    mail["Date"] = formatdate(localtime=True)
    mail["Message-ID"] = f"<{message.id}@{line(sender).rpartition('@')[2] or 'localhost'}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.text)
    return mail


def _log_in(client: smtplib.SMTP, user: str, password: str) -> None:
    """smtplib knows ASCII only; PLAIN is UTF-8 (RFC 4616)."""
    if f"{user}{password}".isascii():
        client.login(user, password)
        return
    client.ehlo_or_helo_if_needed()
    code, answer = client.docmd("AUTH", "PLAIN " + b64encode(f"\0{user}\0{password}".encode()).decode())
    if code != _WELCOME:
        raise smtplib.SMTPAuthenticationError(code, answer)


def _connected(url: SplitResult, tls: ssl.SSLContext, limit: float) -> smtplib.SMTP:
    host, port = url.hostname or "localhost", url.port or _PORTS[url.scheme]
    if url.scheme == "smtps":
        return _TlsClient(host, port, timeout=limit, context=tls)
    return _Client(host, port, timeout=limit)


class _Client(smtplib.SMTP):
    """smtplib's time-out is for one read; this one ends the whole conversation."""

    _alarm: threading.Timer | None = None

    def connect(self, host: str = "localhost", port: int = 0, source_address: Any = None) -> tuple[int, bytes]:
        self._alarm = threading.Timer(self.timeout, self._cut)
        self._alarm.daemon = True
        self._alarm.start()
        try:
            return super().connect(host, port, source_address)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        super().close()

    def _cut(self) -> None:
        if self.sock is not None:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


class _TlsClient(_Client, smtplib.SMTP_SSL):
    """The same over TLS from the first byte."""
