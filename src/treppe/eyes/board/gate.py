"""Who may come in: users from the settings, sessions as signed cookies, a token in every form.

A session is signed with a key of its user's own, random, in the journal, mixed with the password: logging out
throws the key away and so ends all sessions of that user everywhere; changing the password does the same.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from treppe.config import User, Web
from treppe.config.parse import open_secret
from treppe.errors import ConfigError
from treppe.store.protocol import Store

log = logging.getLogger(__name__)

LASTS: Final = 12 * 3600.0
"""Seconds until a session ends."""

_MOST: Final = 1024  # characters of a cookie
_KEY: Final = "board:key:"


class Session(msgspec.Struct, frozen=True):
    """Somebody who has logged in. ``csrf`` goes into every form of this session."""

    user: User
    csrf: str

    @property
    def acts(self) -> bool:
        """May this user change anything?"""
        return self.user.role != "viewer"


class _Ticket(msgspec.Struct, frozen=True, array_like=True):
    name: str
    until: float
    nonce: str


class Gate:
    """The sessions of one store. ``clock`` is in Unix seconds."""

    def __init__(self, store: Store, web: Web, clock: Callable[[], float]) -> None:
        self._journal, self._clock = store.journal, clock
        self._users = {user.name: user for user in web.users}

    @property
    def closed(self) -> bool:
        """Nobody is named, so nobody gets in."""
        return not self._users

    def enter(self, name: str, password: str) -> str | None:
        """The cookie of a new session, or None. A wrong name costs the same comparison as a wrong password."""
        user = self._users.get(name)
        wanted = _password(user) if user is not None else None
        right = _same(wanted or secrets.token_bytes(16), password.encode("utf-8", "surrogatepass"))
        if not right or user is None:
            return None
        ticket = msgspec.json.encode(_Ticket(name, self._clock() + LASTS, secrets.token_urlsafe(12)))
        return f"{_text(ticket)}.{_text(_mac(self._key(user, make=True), b'ticket', ticket))}"

    def session(self, cookie: str) -> Session | None:
        """The session behind a cookie, or None when it is over, forged or its user gone."""
        content, _, mac = cookie[:_MOST].partition(".")
        ticket = _ticket(content)
        user = self._users.get(ticket.name) if ticket is not None else None
        if ticket is None or user is None or ticket.until <= self._clock():
            return None
        key = self._key(user)
        if not hmac.compare_digest(_text(_mac(key, b"ticket", _bytes(content))).encode(), mac.encode()):
            return None
        return Session(user, _text(_mac(key, b"form", ticket.nonce.encode())))

    def leave(self, user: User) -> None:
        """End all sessions of this user."""
        name = _KEY + user.name
        old = self._journal.get(name)
        if old is not None:
            self._journal.swap(name, old, None)

    def _key(self, user: User, make: bool = False) -> bytes:
        name = _KEY + user.name
        kept = self._journal.get(name)
        if kept is None and make:
            self._journal.swap(name, None, secrets.token_bytes(32))
            kept = self._journal.get(name)
        # Without a kept key nothing can be signed right: a random one stands in for it.
        return _mac(kept or secrets.token_bytes(32), b"password", _password(user) or secrets.token_bytes(32))


def own_site(origin: str | None, site: str | None, host: str, public_url: str | None) -> bool:
    """Does a POST come from our own pages? By Fetch Metadata, else by Origin; programs send neither.

    ``Origin: null`` is what browsers send from pages with ``Referrer-Policy: no-referrer``, such as ours.

    >>> own_site("https://evil.example", None, "a.example", None), own_site(None, "cross-site", "a.example", None)
    (False, False)
    >>> own_site("https://a.example", None, "a.example", None), own_site(None, None, "a.example", None)
    (True, True)
    """
    if site is not None:
        return site == "same-origin"
    if origin in (None, "null"):
        return True
    ours = {host, urlsplit(public_url).netloc if public_url else host}
    return urlsplit(origin).netloc in ours


def same(expected: str, given: str) -> bool:
    """Are two texts equal? Says nothing about where they differ."""
    return _same(expected.encode(), given.encode("utf-8", "surrogatepass"))


def _password(user: User) -> bytes | None:
    try:
        return open_secret(user.password)
    except ConfigError as error:
        log.error("%s cannot log in to the board: %s", user.name, error)
        return None


def _same(expected: bytes, given: bytes) -> bool:
    return hmac.compare_digest(hashlib.sha256(expected).digest(), hashlib.sha256(given).digest())


def _mac(key: bytes, purpose: bytes, content: bytes) -> bytes:
    return hmac.new(key, purpose + b"\0" + content, hashlib.sha256).digest()


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii", "replace") + b"=" * (-len(text) % 4))


def _ticket(content: str) -> _Ticket | None:
    try:
        return msgspec.json.decode(_bytes(content), type=_Ticket)
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
        return None
