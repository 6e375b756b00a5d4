"""Text from outside, made fit for a screen or a mail: nothing invisible, nothing endless."""

from __future__ import annotations

from typing import Final

_BIDI: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029, 0xFEFF)
_CONTROL: Final = (*range(0x20), *range(0x7F, 0xA0))
_VISIBLE: Final = {sign: f"\\x{sign:02x}" for sign in _CONTROL} | {sign: f"\\u{sign:04x}" for sign in _BIDI}
_BLOCK: Final = {sign: text for sign, text in _VISIBLE.items() if chr(sign) not in "\n\t"}


def plain(text: str) -> str:
    """*text* with control characters and direction marks spelled out; lines and tabs stay.

    >>> plain("a\\x00b\\u202ec\\nd")
    'a\\\\x00b\\\\u202ec\\nd'
    """
    return text.replace("\r\n", "\n").translate(_BLOCK)


def line(text: str, most: int = 300) -> str:
    """*text* on one line of at most *most* characters.

    >>> line("Bcc: you\\r\\n\\x1b[31m  done"), line("abcdef", 4)
    ('Bcc: you \\\\x1b[31m done', 'abc…')
    """
    flat = " ".join(text.split()).translate(_VISIBLE)
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
