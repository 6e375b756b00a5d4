"""The readers of single values that the grammar is built from: each takes what TOML gives, or says what is wrong."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from treppe.config import parse
from treppe.config.shape import Convert
from treppe.config.words import did_you_mean
from treppe.errors import ConfigError

HEADER_NAME: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}"
"""The name of a header (RFC 9110, section 5.6.2), of a bearable length."""


def duration(least: float, most: float) -> Convert:
    """Seconds within these bounds, written as ``"15m"``."""
    return partial(parse.duration, least=least, most=most)


def whole(least: int, most: int) -> Convert:
    """A whole number within these bounds."""
    return partial(parse.whole, least=least, most=most)


def number(least: float, most: float) -> Convert:
    """A number within these bounds."""
    return partial(parse.number, least=least, most=most)


def text(pattern: str, cure: str, longest: int = 2048) -> Convert:
    """A text that matches the pattern as a whole; *cure* says what to write."""

    def convert(value: Any) -> str:
        if not isinstance(value, str) or len(value) > longest or not re.fullmatch(pattern, value):
            raise ConfigError("", f"{parse.shown(value)} cannot be used here", cure)
        return value

    return convert


def one_of(*options: str, later: tuple[str, ...] = ()) -> Convert:
    """One of these words; those of versions to come are refused with a sentence of their own."""

    def convert(value: Any) -> str:
        if isinstance(value, str) and value in options:
            return value
        if isinstance(value, str) and value in later:
            raise ConfigError("", f'not available in this version: "{value}"', f"Known are: {', '.join(options)}")
        raise ConfigError("", f"{parse.shown(value)} is not known", did_you_mean(str(value), options))

    return convert


def list_of(convert: Convert, most: int = 100) -> Convert:
    """A list; one value alone may stand without brackets."""

    def convert_all(value: Any) -> tuple[Any, ...]:
        values = value if isinstance(value, list) else [value]
        if len(values) > most:
            raise ConfigError("", f"these are {len(values)} entries", f"Not more than {most} are allowed")
        found = tuple(convert(each) for each in values)
        if len(set(found)) < len(found):
            raise ConfigError("", "an entry stands here twice", "Take one out")
        return found

    return convert_all


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ConfigError("", f"{parse.shown(value)} is not true or false", "Write true or false, without quotes")
    return value


def headers(value: Any) -> tuple[tuple[str, str], ...]:
    """Headers of the user's choice, spelled as they stand; never those that are ours to set."""
    if not isinstance(value, dict) or len(value) > 50:
        raise ConfigError("", "headers are a table of up to 50", 'Write { "X-Shop" = "mine" }')
    for name, text in value.items():
        if not re.fullmatch(HEADER_NAME, name) or name.lower() in _OUR_HEADERS:
            raise ConfigError("", f'the header "{name}" cannot be set here', "For a login use auth = { kind = … }")
        if not isinstance(text, str) or not re.fullmatch(r"[\x20-\x7e]{0,1024}", text):
            raise ConfigError(
                "", f'the header "{name}" needs a plain text', "Use up to 1024 printable ASCII characters"
            )
    return tuple(value.items())


_FRAMING: Final = ("connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
_OUR_HEADERS: Final = frozenset(("authorization", "host", *_FRAMING))
