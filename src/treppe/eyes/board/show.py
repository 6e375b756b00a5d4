"""Payloads, headers and answers as people may see them: bounded, secrets hidden, every number as it came."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from treppe.eyes.plain import plain

MOST: Final = 64 * 1024
"""So many bytes of a payload are shown."""

HIDDEN: Final = "•••"

_SECRET: Final = re.compile(
    r"passw|secret|token|authori[sz]ation|api[-_]?key|access[-_]?key|private[-_]?key|credential|cookie|signature|hmac|^auth$",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_FORM: Final = re.compile(r"(?:^|(?<=&))([^=&]*)=([^&]*)")
_DEEPEST: Final = 20  # levels that are indented


class Shown(msgspec.Struct, frozen=True):
    """A text for the page: how many bytes there really are, whether it was cut, whether it was text at all."""

    text: str
    size: int
    cut: bool = False
    odd: bool = False  # not valid UTF-8


def is_secret(name: str) -> bool:
    """Is this the name of a header or field whose value nobody needs to read?

    >>> is_secret("Authorization"), is_secret("X-Shop-Api-Key"), is_secret("customer")
    (True, True, False)
    """
    return _SECRET.search(name) is not None


def payload(body: bytes, content_type: str = "") -> Shown:
    """A body for the page. JSON is indented from its text, so that no digit of a number changes.

    >>> print(payload(b'{"id":12345678901234567890,"f":1.10,"password":"x"}').text)
    {
      "id": 12345678901234567890,
      "f": 1.10,
      "password": •••
    }
    """
    text, odd = _decoded(body[:MOST])
    if _is_json(body):
        text = _indented(text)
    elif "form-urlencoded" in content_type:
        text = _FORM.sub(_without_secret, text)
    cut = len(body) > MOST or len(text) > 4 * MOST
    return Shown(plain(text[: 4 * MOST]), len(body), cut, odd)


def headers(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Headers for the page."""
    return [(plain(name), HIDDEN if is_secret(name) else plain(value)) for name, value in pairs]


def detail(content: bytes | None) -> list[tuple[str, str]]:
    """What is known of one attempt, as names and values, without secrets.

    >>> detail(b'{"status":500,"headers":{"set-cookie":"x"}}')
    [('status', '500'), ('headers.set-cookie', '•••')]
    """
    if not content:
        return []
    try:
        known = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return [("", payload(content).text)]
    return list(_pairs(known))


def _decoded(body: bytes) -> tuple[str, bool]:
    try:
        return body.decode("utf-8"), False
    except UnicodeDecodeError as error:
        broken_at_the_cut = error.end == len(body) == MOST and error.reason == "unexpected end of data"
        return body.decode("utf-8", "backslashreplace"), not broken_at_the_cut


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return body.lstrip()[:1] in (b"{", b"[")


def _indented(text: str) -> str:
    return "".join(_pieces(_without_secrets(match.group() for match in _TOKEN.finditer(text))))


def _pieces(tokens: Iterable[str]) -> Iterator[str]:
    depth, opened = 0, False
    for piece in tokens:
        if piece in ("}", "]"):
            depth -= 1
            yield piece if opened else _line(depth) + piece
        else:
            if opened:
                yield _line(depth)
            depth += piece in ("{", "[")
            yield ": " if piece == ":" else piece
            if piece == ",":
                yield _line(depth)
        opened = piece in ("{", "[")


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, _DEEPEST)


def _without_secrets(tokens: Iterable[str]) -> Iterator[str]:
    """The tokens, with the whole value behind a secret's name replaced."""
    before, hiding, depth = "", False, 0
    for piece in tokens:
        if hiding:
            depth += (piece in ("{", "[")) - (piece in ("}", "]"))
            if depth == 0:
                hiding = False
                yield HIDDEN
            continue
        yield piece
        hiding = piece == ":" and is_secret(before)
        before = piece.strip('"')


def _without_secret(match: re.Match[str]) -> str:
    return f"{match[1]}={HIDDEN if is_secret(match[1]) else match[2]}"


def _pairs(known: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if _is_pairs(known):
        known = dict(known)
    if isinstance(known, dict):
        for key, value in known.items():
            path = f"{name}.{key}" if name else str(key)
            yield from [(plain(path), HIDDEN)] if is_secret(str(key)) else _pairs(value, path)
    elif isinstance(known, str):
        yield plain(name), payload(known.encode("utf-8", "replace")).text
    else:
        yield plain(name), payload(msgspec.json.encode(known)).text


def _is_pairs(known: Any) -> bool:
    """Headers are often kept as a list of names and values."""
    return isinstance(known, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in known
    )
