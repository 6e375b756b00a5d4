"""What people may see of a call: URLs without what may be a key, and texts without our secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

HIDDEN: Final = "…"
_SHORTEST: Final = 4  # a shorter "secret" would blacken half of every text


def shown_url(url: str) -> str:
    """A URL without user, query values and fragment; long random parts of the path are cut to four characters.

    >>> shown_url("https://me:pw@hook.example:8443/a/x7Kq2mN8vR4tY6wZ1bC3?key=s3cret&page#top")
    'https://hook.example:8443/a/x7Kq…?key=…&…'
    """
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
    except ValueError:
        return HIDDEN
    path = re.sub(r"(?<=/)(?=[^/\d]*\d)([^/]{4})[^/]{12,}", rf"\1{HIDDEN}", parts.path)
    query = "&".join(name + equals + HIDDEN if equals else HIDDEN for name, equals in _names(parts.query))
    return clean(f"{parts.scheme}://{place}{path}" + (f"?{query}" if query else ""))


def scrub(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret blackened, as some servers send back what they were sent.

    >>> scrub("Bearer s3cret is no good", ["s3cret"])
    'Bearer … is no good'
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def clean(text: str) -> str:
    """The text without NUL and lone surrogates, which not every store can keep.

    >>> clean("a\\x00b\\ud800") == "a\N{REPLACEMENT CHARACTER}b?"
    True
    """
    return text.encode("utf-8", "replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")


def _names(query: str) -> list[tuple[str, str]]:
    return [pair.partition("=")[:2] for pair in query.split("&") if pair]
