"""Is this really the sender? HMAC over the raw bytes, before anything else looks at them.

Each verifier is a function ``(arrival, now) -> Fault | None``. Whatever a sender may write into a header ends in a
:class:`Fault`, never in an exception. The secrets are bytes; several are valid at once while they are being changed.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from treppe.config import Verify
from treppe.door.arrival import Arrival, Headers
from treppe.errors import ConfigError


class Fault(NamedTuple):
    """Why a signature does not count: a short name for figures, a sentence for people."""

    code: str
    text: str


Verifier = Callable[[Arrival, float], Fault | None]
"""Says what is wrong with an arrival at *now* (Unix seconds); None = nothing."""

Algo = Literal["hmac-sha1", "hmac-sha256", "hmac-sha512"]

TOLERANCE: Final = 300.0
"""Seconds that a signed time may lie behind or ahead of ours."""


def unsigned(arrival: Arrival, now: float) -> None:
    """The verifier of ``verify = "none"``: everybody is believed."""


def shopify(secrets: Sequence[bytes], where: str = "secret") -> Verifier:
    """``X-Shopify-Hmac-Sha256``: base64 of the HMAC-SHA256 over the body; no time is signed.

    Source: shopify.dev, "Verify webhook deliveries".

    >>> from treppe.door.arrival import Headers
    >>> signed = Headers([(b"x-shopify-hmac-sha256", b"E9XxLgppVNX12rqWuu0/CN/43MeuZC0xdhRuMq1MPWg=")])
    >>> shopify([b"hush"])(Arrival(signed, b'{"id": 1}'), now=0.0)
    >>> shopify([b"hush"])(Arrival(signed, b'{"id": 2}'), now=0.0).code
    'signature-wrong'
    """
    return Hmac(secrets, Verify("X-Shopify-Hmac-Sha256", encoding="base64"), where)


def standard_webhooks(secrets: Sequence[bytes], where: str = "secret") -> Verifier:
    """``webhook-signature``: a list of ``v1,<base64>`` over ``id.timestamp.body``; the ``svix-`` names count as well.

    Source: github.com/standard-webhooks/standard-webhooks, spec 1.0.0. Secrets are ``whsec_`` and base64.
    """
    keys = [_standard_key(secret, where) for secret in secrets]
    ours, svix = (
        Hmac(
            keys,
            Verify(
                f"{brand}-signature",
                encoding="base64",
                signed="{id}.{timestamp}.{body}",
                timestamp_header=f"{brand}-timestamp",
                id_header=f"{brand}-id",
            ),
            where,
            listed=b"v1,",
        )
        for brand in ("webhook", "svix")
    )
    # The id must be the one that is signed, so one brand's headers never stand in for the other's.
    return lambda arrival, now: (svix if arrival.headers.get(b"webhook-id") is None else ours)(arrival, now)


class Hmac:
    """HMAC as :class:`~treppe.config.Verify` describes it; ConfigError (at *where*) when that cannot work.

    With *listed* the header is a list, divided by spaces, of which the entries with that prefix count.
    """

    def __init__(self, secrets: Sequence[bytes], verify: Verify, where: str, listed: bytes | None = None) -> None:
        if not secrets or not all(secrets):
            raise ConfigError(where, "there is no secret to check signatures with", 'Add secret = "env:NAME"')
        digest = verify.algo.removeprefix("hmac-")
        self._macs = tuple(hmac.new(secret, digestmod=digest) for secret in secrets)
        self._hex = verify.encoding == "hex"
        self._prefix = verify.prefix.encode()
        self._listed = listed
        self._tolerance = verify.tolerance
        self._pieces = _pieces(verify, where)
        self._id_ends_at_a_dot = "{id}." in verify.signed
        headers = {"signature": verify.header, "timestamp": verify.timestamp_header, "id": verify.id_header}
        self._names = tuple((part, header.lower().encode()) for part, header in headers.items() if header)

    def __call__(self, arrival: Arrival, now: float) -> Fault | None:
        """What is wrong with this arrival, or None."""
        values = {"body": arrival.body}
        for part, name in self._names:
            value = arrival.headers.only(name)
            if not value:
                return _unusable(part, name, arrival.headers)
            values[part] = value
        fault = self._odd(values, now) if len(values) > 2 else None
        return fault or self._compared(values)

    def _odd(self, values: dict[str, bytes], now: float) -> Fault | None:
        """Id and time before the signature: cheap, and nothing of them is believed yet."""
        if self._id_ends_at_a_dot and b"." in values["id"]:
            return Fault("id-unusable", "the id holds a dot, which divides what is signed")
        if "timestamp" not in values:
            return None
        if not _SECONDS.fullmatch(values["timestamp"]):
            return Fault("timestamp-unreadable", "the timestamp is not a time in whole seconds")
        age = now - int(values["timestamp"])
        if age > self._tolerance:
            return Fault("too-old", f"the timestamp is {age:.0f} s old: held back on the way, or a clock is wrong")
        if age < -self._tolerance:
            return Fault("too-new", f"the timestamp is {-age:.0f} s ahead: the sender's clock or ours is wrong")
        return None

    def _compared(self, values: dict[str, bytes]) -> Fault | None:
        given = self._given(values["signature"])
        for mac in self._macs:
            expected = self._expected(mac.copy(), values)
            for each in given:
                if hmac.compare_digest(expected, each):
                    return None
        return Fault("signature-wrong", "the signature does not match: another secret, or a changed body")

    def _expected(self, mac: hmac.HMAC, values: dict[str, bytes]) -> bytes:
        for piece in self._pieces:
            mac.update(values[piece] if isinstance(piece, str) else piece)
        digest = mac.digest()
        return digest.hex().encode() if self._hex else binascii.b2a_base64(digest, newline=False)

    def _given(self, value: bytes) -> list[bytes]:
        if self._listed is not None:
            given = [each[len(self._listed) :] for each in value.split(b" ") if each.startswith(self._listed)]
            return given[:_MOST_SIGNATURES]
        if not value.startswith(self._prefix):
            return []
        value = value[len(self._prefix) :]
        return [value.lower() if self._hex else value]


_SECONDS: Final = re.compile(rb"[0-9]{1,12}")
_MOST_SIGNATURES: Final = 16


def _unusable(part: str, name: bytes, headers: Headers) -> Fault:
    value = headers.get(name)
    how = "missing" if value is None else "repeated" if headers.repeats(name) else "empty"
    sentence = {"missing": "is missing", "empty": "is empty", "repeated": "came more than once"}[how]
    return Fault(f"{part}-{how}", f"the header {name.decode()} {sentence}")


def _pieces(verify: Verify, where: str) -> tuple[bytes | str, ...]:
    """What is signed, in pieces: bytes as they are, text names a value."""
    texts = re.split(r"\{(\w+)\}", verify.signed)
    pieces = tuple(text if i % 2 else text.encode() for i, text in enumerate(texts) if text)
    given = {"body": True, "timestamp": verify.timestamp_header, "id": verify.id_header}
    for name in texts[1::2]:
        if name not in given:
            raise ConfigError(where, f'signed names "{{{name}}}"', "Known are {body}, {timestamp} and {id}")
        if not given[name]:
            raise ConfigError(where, f'signed names "{{{name}}}"', f"Then {name}_header must name its header")
    if "body" not in texts[1::2]:
        raise ConfigError(where, "the body is not signed", 'Name it in signed = "…{body}"')
    if verify.timestamp_header and "timestamp" not in texts[1::2]:
        raise ConfigError(
            where, "the timestamp is not signed, so anybody can change it", "Name it in signed, or leave its header out"
        )
    return pieces


def _standard_key(secret: bytes, where: str) -> bytes:
    if secret.startswith((b"whpk_", b"whsk_")):
        raise ConfigError(where, "ed25519 keys are not supported", "Ask the sender for a symmetric secret (whsec_…)")
    try:
        text = secret.removeprefix(b"whsec_")
        key = base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except ValueError:
        key = b""
    if not 16 <= len(key) <= 256:
        cure = "Copy the whole of it, as the sender shows it: whsec_ and base64"
        raise ConfigError(where, "this is not a secret of Standard Webhooks", cure)
    return key
