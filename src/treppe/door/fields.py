"""Paths into headers and bodies: ``header:X-Id``, ``body:customer.id``, ``body:items[0].sku``, ``body-hash``.

A path that finds nothing gives None: the event is kept all the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from treppe.door.arrival import ABSENT, Arrival
from treppe.errors import ConfigError

Field = Callable[[Arrival], str | None]
"""Takes a text out of what came, or None."""

Value = Callable[[Arrival], Any]
"""Takes a JSON value (numbers as text, see ``arrival.Number``), or ABSENT."""

MAX_TEXT: Final = 255
"""Ids and keys are never longer; see :func:`fitting`."""


def field(path: str, where: str) -> Field:
    """One path as a function; ConfigError (at *where*) when it cannot be read.

    >>> from treppe.door.arrival import Headers
    >>> came = Arrival(Headers([(b"x-id", b"7")]), b'{"items": [{"sku": "A-1"}]}')
    >>> field("header:X-Id", "id")(came), field("body:items[0].sku", "id")(came), field("body:nothing", "id")(came)
    ('7', 'A-1', None)
    """
    if path == "body-hash":
        return _body_hash
    if (name := _header_name(path)) is not None:
        return lambda arrival: found.decode("latin-1") if (found := arrival.headers.only(name)) else None
    take = value(path, where)
    return lambda arrival: text_of(take(arrival))


def value(path: str, where: str) -> Value:
    """The same, but the JSON value itself."""
    if (name := _header_name(path)) is not None:
        return lambda arrival: ABSENT if (found := arrival.headers.only(name)) is None else found.decode("latin-1")
    steps = _steps(path)
    if not steps:
        cure = 'Write "header:X-Name", "body:customer.id", "body:items[0].sku" or "body-hash"'
        raise ConfigError(where, f'"{path}" is not a path', cure)
    return lambda arrival: dig(arrival.json, steps)


def joined(paths: Sequence[str], where: str) -> Field:
    """Several paths as one text, joined by ``:``; None when one of them finds nothing.

    Colons inside a part are escaped, so that two different lists never look alike.
    """
    fields = [field(path, where) for path in paths]
    if len(fields) == 1:
        return fields[0]

    def take(arrival: Arrival) -> str | None:
        parts = []
        for each in fields:
            part = each(arrival)
            if part is None:
                return None
            parts.append(part.replace("%", "%25").replace(":", "%3A"))
        return ":".join(parts)

    return take


def first_of(fields: Sequence[Field]) -> Field:
    """The first of several that finds something."""

    def take(arrival: Arrival) -> str | None:
        for each in fields:
            found = each(arrival)
            if found is not None:
                return found
        return None

    return fields[0] if len(fields) == 1 else take


def dig(found: Any, steps: Sequence[str | int]) -> Any:
    """Follow a path into parsed JSON; ABSENT where it ends too early."""
    for step in steps:
        if isinstance(step, int):
            found = found[step] if isinstance(found, list) and step < len(found) else ABSENT
        else:
            found = found.get(step, ABSENT) if isinstance(found, dict) else ABSENT
    return found


def text_of(found: Any) -> str | None:
    """A scalar as text; None for what is absent, empty, null, a list or an object.

    >>> text_of("x"), text_of(True), text_of(""), text_of(None), text_of([1])
    ('x', 'true', None, None, None)
    """
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str) and found else None


def fitting(text: str) -> str:
    """A text that every store can keep as an id or key: what is too long or not plain gets a hash for a tail.

    >>> fitting("order:42")
    'order:42'
    >>> len(fitting("x" * 1000)), fitting("a" * 300) == fitting("a" * 301), fitting("tab" + chr(9))[:4]
    (255, False, 'tab~')
    """
    if len(text) <= MAX_TEXT and (text.isprintable() or _PLAIN.fullmatch(text)):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_NOT_PLAIN.sub('', text)[: MAX_TEXT - 65]}~{digest}"


def _header_name(path: str) -> bytes | None:
    kind, _, name = path.partition(":")
    return name.lower().encode() if kind == "header" and _HEADER_NAME.fullmatch(name) else None


def _body_hash(arrival: Arrival) -> str:
    return hashlib.sha256(arrival.body).hexdigest()


def _steps(path: str) -> list[str | int] | None:
    kind, _, rest = path.partition(":")
    if kind != "body" or not _BODY_PATH.fullmatch(rest):
        return None
    return [name or int(index) for name, index in _STEP.findall(rest)]


_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")  # RFC 9110, 5.6.2
_NAME: Final = r"[^\s.\[\]]+"
_BODY_PATH: Final = re.compile(rf"(?:{_NAME}|\[\d{{1,6}}\])(?:\.{_NAME}|\[\d{{1,6}}\])*", re.ASCII)
_STEP: Final = re.compile(rf"({_NAME})|\[(\d+)\]", re.ASCII)
_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_NOT_PLAIN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
