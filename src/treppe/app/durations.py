"""Durations as people write them in Python: seconds, ``"15m"``, or a ``timedelta``."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import isfinite
from typing import Final

from treppe.config.parse import duration, say_duration
from treppe.errors import ConfigError

Duration = float | str | timedelta

MOST: Final = 3660 * 86400.0


def seconds(value: object, where: str, least: float = 0.0, most: float = MOST) -> float:
    """A duration in seconds; ConfigError names *where* it was written.

    >>> seconds(90, "delay"), seconds("15m", "delay"), seconds(timedelta(days=1), "delay")
    (90.0, 900.0, 86400.0)
    >>> seconds(-1, "delay")
    Traceback (most recent call last):
    treppe.errors.ConfigError: delay: -1 is out of bounds. Choose one from 0s to 3660d
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, str):
        return duration(value, where, least=least, most=most)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ConfigError(where, f"{_shown(value)} is not a duration", 'Give seconds, or a text such as "15m"')
    if not (isfinite(value) and least <= value <= most):
        bounds = f"Choose one from {say_duration(least)} to {say_duration(most)}"
        raise ConfigError(where, f"{value} is out of bounds", bounds)
    return float(value)


def moment(value: object, where: str) -> float:
    """A moment in Unix seconds; a ``datetime`` must say its time zone.

    >>> from datetime import UTC
    >>> moment(datetime(2026, 11, 27, 9, 0, tzinfo=UTC), "at")
    1795770000.0
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ConfigError(where, "this time has no time zone", "Write datetime(…, tzinfo=UTC), or Unix seconds")
        return value.timestamp()
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ConfigError(where, f"{_shown(value)} is not a time", "Give Unix seconds, or a datetime with a time zone")
    return float(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
