"""``Retry-After`` (RFC 9110, 10.2.3): how long a target asks us to wait."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST: Final = 86400.0
"""No longer wait is believed, in seconds."""

_TEXT_LIMIT: Final = 64


def wait_asked(headers: Iterable[tuple[str, str]], now: float) -> float | None:
    """The seconds asked for, from 0 to :data:`LONGEST`; None if there is no header that can be read.

    A date is counted from the target's own ``Date`` where it sends one, so that its clock need not be ours;
    else from *now* (Unix seconds). Of several headers the longest wait counts.

    >>> wait_asked([("Retry-After", "120")], now=0.0)
    120.0
    >>> wait_asked([("retry-after", "Thu, 01 Jan 1970 00:01:00 GMT")], now=10.0)
    50.0
    >>> wait_asked([("Retry-After", "1000abc")], now=0.0)
    """
    lowered = [(name.lower(), value) for name, value in headers]
    dates = (_moment(value) for name, value in lowered if name == "date")
    since = next((date for date in dates if date is not None), now)
    waits = (_seconds(value, since) for name, value in lowered if name == "retry-after")
    return max((wait for wait in waits if wait is not None), default=None)


def _seconds(value: str, since: float) -> float | None:
    value = value.strip(" \t")
    if re.fullmatch("[0-9]{1,9}", value):  # int() would take +5, 1_000 and Arabic digits as well
        return min(float(value), LONGEST)
    moment = _moment(value)
    return None if moment is None else min(max(moment - since, 0.0), LONGEST)


def _moment(value: str) -> float | None:
    """An HTTP date in any of its three forms as Unix seconds; asctime's has no zone and means UTC."""
    if len(value) > _TEXT_LIMIT or not re.search("[0-9]{2}:[0-9]{2}:[0-9]{2}", value):
        return None
    try:
        moment = parsedate_to_datetime(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
