"""The pace of a queue, as Python code says it; ``treppe.toml`` says the same in ``[queue.NAME]``."""

from __future__ import annotations

import re
from typing import Any

from treppe.config import Queue
from treppe.config.parse import rate as parse_rate
from treppe.config.parse import whole
from treppe.errors import ConfigError


def paced(name: Any, rate: Any = None, burst: Any = 1, concurrent: Any = None) -> Queue:
    """A queue's pace, checked; ConfigError names what is wrong.

    >>> paced("lexware", rate="2/s", concurrent=1).rate
    Rate(n=2, per=1.0)
    >>> paced("lexware", rate="2 per second")
    Traceback (most recent call last):
    treppe.errors.ConfigError: queue "lexware": rate: "2 per second" is not a rate. Write calls per time, ...
    """
    if not (isinstance(name, str) and re.fullmatch(r"[a-z0-9][a-z0-9_.:/-]{0,126}[a-z0-9_.:/*-]?", name)):
        cure = "Use up to 128 small letters, digits and . _ : / -; at the end a * for all that begin so"
        raise ConfigError("queue", f"{name!r} is not a good name", cure)
    try:
        return _paced(name, rate, burst, concurrent)
    except ConfigError as error:
        raise ConfigError(f'queue "{name}": {error.where}', error.problem, error.cure) from None


def _paced(name: str, rate: Any, burst: Any, concurrent: Any) -> Queue:
    limit = None if rate is None else parse_rate(rate)
    at_once = None if concurrent is None else _whole("concurrent", concurrent, 10_000)
    _whole("burst", burst, 1_000_000)
    if burst > (limit.n if limit else 1):
        raise ConfigError("burst", "more than the rate allows", "Choose at most the rate's number of calls")
    return Queue(name, limit, burst, at_once)


def _whole(where: str, value: Any, most: int) -> int:
    try:
        return whole(value, 1, most)
    except ConfigError as error:
        raise ConfigError(where, error.problem, error.cure) from None
