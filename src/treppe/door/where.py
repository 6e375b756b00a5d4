"""A source's ``where``: ``body:total > 0``, ``body:status == "paid"``, ``header:X-Test != "1"`` or ``body:paid``.

It is read once, at the start. Numbers are compared exactly, also where the sender writes them as text
(Shopify's prices: ``"199.00"``). What cannot be compared is not larger, not smaller and not equal.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from treppe.door.arrival import ABSENT, Arrival, Number
from treppe.door.fields import value
from treppe.errors import ConfigError

Condition = Callable[[Arrival], bool]


def condition(text: str, where: str) -> Condition:
    """A ``where`` as a function; ConfigError (at *where*) when it cannot be read.

    >>> from treppe.door.arrival import Headers
    >>> order = Arrival(Headers([]), b'{"total": "199.00", "status": "paid", "tags": []}')
    >>> tests = ("body:total > 0", 'body:status == "paid"', "body:tags", "body:gone == null")
    >>> [condition(text, "where")(order) for text in tests]
    [True, True, False, True]
    """
    match = _TEST.fullmatch(text)
    if match is None:
        raise ConfigError(where, f'"{text}" is not a test', _CURE)
    take = value(match["path"], where)
    if match["operator"] is None:
        return lambda arrival: _truthy(take(arrival))
    literal = _literal(match["literal"], where)
    if match["operator"] in ("==", "!="):
        wanted = match["operator"] == "=="
        return lambda arrival: _equal(take(arrival), literal) is wanted
    if not isinstance(literal, Decimal):
        raise ConfigError(where, f'"{text}": larger and smaller need a number', _CURE)
    compare = _ORDER[match["operator"]]
    return lambda arrival: (number := _number(take(arrival))) is not None and compare(number, literal)


_CURE: Final = 'Write "body:total > 0", "body:status == \'paid\'" or "body:paid"; one test only'
_TEST: Final = re.compile(r"\s*(?P<path>[^\s=!<>]+)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<literal>\S.*?)\s*)?")
_ORDER: Final[dict[str, Callable[[Decimal, Decimal], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_WORDS: Final = {"true": True, "false": False, "null": None}
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _literal(text: str, where: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if quoted := re.fullmatch(r"\"([^\"]*)\"|'([^']*)'", text):
        return quoted[1] if quoted[1] is not None else quoted[2]
    number = _number(Number(text))
    if number is None:
        raise ConfigError(where, f'"{text}" is not a value', "Put text in quotes; or use a number, true, false, null")
    return number


def _number(found: Any) -> Decimal | None:
    """Numbers, and text that is nothing but a number."""
    if not isinstance(found, str) or not _NUMBER.fullmatch(found):
        return None
    try:
        return Decimal(found)
    except InvalidOperation:  # an exponent beyond all bounds
        return None


def _equal(found: Any, literal: Any) -> bool:
    if isinstance(literal, Decimal):
        return _number(found) == literal
    if literal is None:
        return found is None or found is ABSENT
    if isinstance(literal, bool):
        return found is literal
    return isinstance(found, str) and not isinstance(found, Number) and found == literal


def _truthy(found: Any) -> bool:
    if isinstance(found, Number):
        return _number(found) != 0
    return found is not ABSENT and bool(found)
