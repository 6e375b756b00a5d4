"""One HTTP call, ready to go: bytes as they came, headers that cannot be abused, and what it may reach."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final
from urllib.parse import quote

import msgspec

from treppe.config import Auth, Destination, Secret
from treppe.delivery.guard import Unsendable
from treppe.delivery.redact import shown_url
from treppe.job import Claim, Repeat

Headers = tuple[tuple[str, str], ...]
OpenSecret = Callable[[Secret], bytes]

HOP: Final = "Treppe-Hop"
MOST_HOPS: Final = 5
"""A delivery that has come back to our own door more often than this goes round in circles."""

_ID_LIMIT: Final = 255  # what APIs take as an idempotency key, e.g. Stripe
_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_FRAMING: Final = frozenset(
    ("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)


class Request(msgspec.Struct, frozen=True):
    """What to send, and the bounds it is sent in. Its ``repr`` shows neither headers nor body."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    limit: float = 30.0  # seconds for the whole exchange
    repeatable: bool = False  # harmless when sent twice, so it may ride on a kept connection
    allow_networks: tuple[str, ...] = ()
    allow_http: bool = False
    secrets: tuple[str, ...] = ()  # blackened wherever the answer repeats them

    def __repr__(self) -> str:
        """Method and place only."""
        return f"Request({self.method} {shown_url(self.url)})"


def hops(headers: Iterable[tuple[str, str]]) -> int:
    """How often an event has already been through a door of ours.

    >>> hops([("treppe-hop", "2")]), hops([]), hops([("Treppe-Hop", "-1")])
    (2, 0, 0)
    """
    came = (value for name, value in headers if name.lower() == HOP.lower())
    return max((int(value) for value in came if re.fullmatch("[0-9]{1,4}", value)), default=0)


def delivery(claim: Claim, to: Destination, open_secret: OpenSecret) -> Request:
    """The call that carries out *claim*. Raises :class:`Unsendable` when a header cannot be sent as it is set."""
    headers, secrets = _headers(to, open_secret, _content(claim), _our_own(claim, to))
    return Request(
        to.method,
        to.url,
        headers,
        claim.payload,
        limit=to.timeout,
        repeatable=claim.repeat is Repeat.SAFE,
        allow_networks=to.allow_networks,
        allow_http=to.allow_http,
        secrets=secrets,
    )


def probe(to: Destination, url: str, open_secret: OpenSecret) -> Request:
    """A harmless GET with the login of *to*."""
    headers, secrets = _headers(to, open_secret)
    return Request(
        "GET",
        url,
        headers,
        limit=to.timeout,
        repeatable=True,
        allow_networks=to.allow_networks,
        allow_http=to.allow_http,
        secrets=secrets,
    )


def _headers(
    to: Destination, open_secret: OpenSecret, content: Headers = (), our_own: Headers = ()
) -> tuple[Headers, tuple[str, ...]]:
    """All headers, ours last, and what in them must never be seen."""
    login, secrets = _login(to.auth, open_secret)
    first: Headers = (("User-Agent", "Treppe"), ("Accept", "*/*"), *content)
    last: Headers = (("Accept-Encoding", "identity"), *our_own, *login)
    headers = _layered(first, to.headers, last)
    _check(headers)
    return headers, (*secrets, *(value for name, value in to.headers if _sounds_secret(name)))


def _content(claim: Claim) -> Headers:
    """How the bytes are to be read: as the sender said, or not at all when that cannot be passed on."""
    coding = (value for name, value in claim.headers if name.lower() == "content-encoding")
    said = [("Content-Type", claim.content_type), *(("Content-Encoding", value) for value in coding)]
    return tuple((name, value) for name, value in said if re.fullmatch(r"[\x21-\x7e][\x20-\x7e]{0,254}", value))


def _our_own(claim: Claim, to: Destination) -> Headers:
    said = [("Treppe-Job-Id", claim.id), ("Treppe-Attempt", str(claim.claims)), (HOP, str(hops(claim.headers) + 1))]
    if claim.event:
        said += [("Treppe-Source", claim.event[0]), ("Treppe-Event-Id", claim.event[1])]
    if claim.topic:
        said.append(("Treppe-Topic", claim.topic))
    if to.idempotency:
        said.append((to.idempotency, claim.id))
    return tuple((name, _plain(value)) for name, value in said)


def _plain(value: str) -> str:
    """Any text as a header value: the same text always gives the same value, different texts different ones."""
    plain = quote(value, safe="!\"#$&'()*+,/:;<=>?@[]^`{|}", errors="surrogatepass")
    return plain if len(plain) <= _ID_LIMIT else f"sha256-{sha256(plain.encode()).hexdigest()}"


def _login(auth: Auth, open_secret: OpenSecret) -> tuple[Headers, tuple[str, ...]]:
    """The login header, and everything in it that must never be seen."""
    if auth.kind == "bearer" and auth.token:
        token = _opened(auth.token, open_secret)
        return (("Authorization", f"Bearer {token}"),), (token,)
    if auth.kind == "basic" and auth.password:
        password = _opened(auth.password, open_secret)
        both = b64encode(f"{auth.user}:{password}".encode()).decode()
        return (("Authorization", f"Basic {both}"),), (password, both)
    if auth.kind == "header" and auth.value:
        value = _opened(auth.value, open_secret)
        return ((auth.name, value),), (value,)
    if auth.kind != "none":
        raise Unsendable(f'auth: kind = "{auth.kind}" has no secret; name one, e.g. "env:NAME"')
    return (), ()


def _opened(secret: Secret, open_secret: OpenSecret) -> str:
    try:
        return open_secret(secret).decode()
    except UnicodeDecodeError:
        raise Unsendable(f"auth: the value of {secret!r} is not text (UTF-8); check that it is the right one") from None


def _layered(*layers: Headers) -> Headers:
    """Headers where a later layer replaces the same name of an earlier one, in the spelling it was given."""
    merged: list[tuple[str, str]] = []
    for layer in layers:
        replaced = {name.lower() for name, _ in layer}
        merged = [(name, value) for name, value in merged if name.lower() not in replaced] + list(layer)
    return tuple(merged)


def _check(headers: Headers) -> None:
    for name, value in headers:
        if not re.fullmatch(_NAME, name) or name.lower() in _FRAMING:
            raise Unsendable(f"the header {name!r} cannot be set; take it out of the destination")
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise Unsendable(f'the value of the header "{name}" holds a line break or another control character')


def _sounds_secret(name: str) -> bool:
    return re.search("auth|cookie|key|secret|sign|token", name.lower()) is not None
