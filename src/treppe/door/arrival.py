"""One webhook as it came: its headers, its bytes, and a careful look into them."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, Final

from treppe.door.answers import HeaderPairs

MAX_DEPTH: Final = 64
"""JSON nested deeper than this is not looked into."""


class Headers:
    """Headers by name; says when one came more than once, as that is how checks are fooled.

    >>> headers = Headers([(b"x-id", b"7"), (b"x-sig", b"a"), (b"x-sig", b"b")])
    >>> headers.get(b"x-id"), headers.repeats(b"x-id"), headers.repeats(b"x-sig"), headers.only(b"x-sig")
    (b'7', False, True, None)
    """

    def __init__(self, pairs: HeaderPairs) -> None:
        self.pairs = pairs
        self._named = dict(pairs)
        self._distinct = len(self._named) == len(pairs)

    def get(self, name: bytes) -> bytes | None:
        """The value, or None; of several the last one."""
        return self._named.get(name)

    def repeats(self, name: bytes) -> bool:
        """True when it came more than once."""
        return not self._distinct and sum(1 for each, _ in self.pairs if each == name) > 1

    def only(self, name: bytes) -> bytes | None:
        """The value, or None when it is absent or came more than once."""
        return self._named.get(name) if self._distinct or not self.repeats(name) else None


class Number(str):
    """A number exactly as it was written: ``12345678901234567890`` and ``10.10`` stay what they are."""

    __slots__ = ()


ABSENT: Final = object()
"""Stands for a body that cannot be looked into, and for a field that is not there; ``null`` is None."""


class Arrival:
    """What came, before anybody says what it means. JSON is only read when somebody asks for it."""

    def __init__(self, headers: Headers, body: bytes) -> None:
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        """The body as read by :func:`look_into`, or ABSENT."""
        return self._looked[0]

    @property
    def trouble_seen(self) -> str:
        """Why the body could not be looked into, or what is odd about it; empty when nobody looked."""
        return self._looked[1] if "_looked" in self.__dict__ else ""

    @cached_property
    def _looked(self) -> tuple[Any, str]:
        encoding = self.headers.get(b"content-encoding")
        if encoding and encoding.lower() != b"identity":
            return ABSENT, "the body is compressed"
        return look_into(self.body)


def look_into(body: bytes) -> tuple[Any, str]:
    """Read JSON within bounds: ``(value, "")``, or ``(ABSENT, why not)``. Numbers stay text, see :class:`Number`.

    Of keys that stand twice in one object the last counts, and the second part says so.

    >>> look_into(b'{"id": 1.50}')
    ({'id': '1.50'}, '')
    >>> look_into(b'{"id": NaN}')[1]
    'the body is not JSON'
    >>> look_into(b'{"id": 1, "id": 2}')
    ({'id': '2'}, 'a key stands twice in one object')
    """
    if is_deeper_than(MAX_DEPTH, body):
        return ABSENT, f"the body is nested more than {MAX_DEPTH} deep"
    twice = False

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        made = dict(pairs)
        twice = twice or len(made) != len(pairs)
        return made

    try:
        text = body.decode("utf-8")  # json would also guess UTF-16 and UTF-32
        value = json.loads(
            text, object_pairs_hook=keep, parse_int=Number, parse_float=Number, parse_constant=_not_a_number
        )
    except ValueError:
        return ABSENT, "the body is not JSON"
    return value, "a key stands twice in one object" if twice else ""


def is_deeper_than(depth: int, body: bytes) -> bool:
    """Count nesting without a parser: strings are cut out, then each round takes the innermost pairs away.

    Exact for valid JSON; a parser that recurses is only called where this says no.

    >>> is_deeper_than(2, b'[[1]]'), is_deeper_than(2, b'[{"a": []}]'), is_deeper_than(2, b'["[[[[", []]')
    (False, True, False)
    """
    if body.count(b"[") + body.count(b"{") <= depth:
        return False
    outside = b"".join(body.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    pairs = outside.translate(_SQUARE, _NO_BRACKETS)
    for _ in range(depth):
        if not pairs:
            return False
        pairs = pairs.replace(b"[]", b"")
    return bool(pairs)


_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_SQUARE: Final = bytes.maketrans(b"{}", b"[]")


def _not_a_number(name: str) -> Any:
    raise ValueError(name)
