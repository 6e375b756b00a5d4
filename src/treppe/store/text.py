"""Text that every store takes."""

from __future__ import annotations

import re
from typing import Final

MAX_ERROR: Final = 4_000
"""Characters of an error that are kept."""


def clean(text: str | bytes, limit: int = MAX_ERROR) -> str:
    r"""NUL, lone surrogates and bytes that are no UTF-8 become U+FFFD; cut to *limit* characters.

    A failing *error message* must never wedge a job (kestra#10326, pg-boss, hatchet#4619).

    >>> clean("500\x00 \ud800 caf\u00e9"), clean(b"\xff!"), clean("endless", limit=4)
    ('500� � café', '�!', 'end…')
    """
    if not text:
        return ""
    if isinstance(text, bytes):
        text = text[: 4 * limit + 4].decode("utf-8", "replace")
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isascii():
        return text.replace("\0", "\ufffd")
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\ufffd")


def can_be(*names: str | None) -> bool:
    r"""False where one of these holds what no store keeps, NUL or a lone surrogate: nothing has such a name.

    >>> can_be("invoice:42", None), can_be("caf\udce9"), can_be("crm", "\x00")
    (True, False, False)
    """
    return not any(name and _IMPOSSIBLE.search(name) for name in names)


_IMPOSSIBLE: Final = re.compile("[\x00\ud800-\udfff]")
