"""The settings of a task, checked when it is made: a mistake is found at import, not at the first job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, TypedDict

import msgspec

from treppe.app.durations import Duration, seconds
from treppe.config import DAY, Backoff
from treppe.config.parse import number, whole
from treppe.config.words import did_you_mean
from treppe.errors import ConfigError
from treppe.job import Repeat

Down = type[BaseException] | tuple[type[BaseException], ...]


class Given(TypedDict, total=False):
    """What people write in ``@app.task(…)``; what is left out is as in :class:`Options`."""

    queue: str
    attempts: int
    crashes: int
    deadline: Duration
    expires: Duration
    timeout: Duration
    key: str
    repeat: Literal["safe", "ask"]
    priority: int
    keep: Duration
    backoff: Backoff
    skip_dead: bool
    down: Down


class Options(msgspec.Struct, frozen=True):
    """The settings of a task; durations in seconds."""

    queue: str
    attempts: int = 5
    crashes: int = 3
    deadline: float | None = None
    expires: float = 14 * DAY
    timeout: float | None = None
    key: str | None = None  # the name of the argument that is the order key
    repeat: Repeat = Repeat.SAFE
    priority: int = 0
    keep: float = 30 * DAY
    backoff: Backoff = Backoff()
    skip_dead: bool = False
    down: tuple[type[BaseException], ...] | None = None  # None = the well-known ones


def options(task: str, given: Mapping[str, object]) -> Options:
    """The settings of ``@app.task(…)``; ConfigError names the one that is wrong.

    >>> options("shop.send_mail", {"attempts": 3, "timeout": "30s"}).timeout
    30.0
    >>> options("shop.send_mail", {"atempts": 3})
    Traceback (most recent call last):
    treppe.errors.ConfigError: task "shop.send_mail": there is no setting "atempts". Did you mean "attempts"?
    """
    read = {name: _read(task, name, value) for name, value in given.items()}
    return Options(**{"queue": queue_named_after(task), **read})


def queue_named_after(task: str) -> str:
    """The queue of a task that names none: its own name, as queues are spelled.

    >>> queue_named_after("__main__.sendMail")
    'main__.sendmail'
    """
    return re.sub(r"[^a-z0-9_.:/-]", "-", task.lower()).lstrip("_.:/-")[:128] or "default"


def queue_name(value: Any) -> str:
    """A name as queues are spelled, or ConfigError.

    >>> queue_name("shop:acme")
    'shop:acme'
    """
    if isinstance(value, str) and re.fullmatch(r"[a-z0-9][a-z0-9_.:/-]{0,127}", value):
        return value
    cure = "Use up to 128 small letters, digits and . _ : / -, beginning with a letter or digit"
    raise ConfigError("queue", f"{value!r} is not a good name", cure)


def _read(task: str, name: str, value: Any) -> Any:
    if name not in _READERS:
        raise ConfigError(f'task "{task}"', f'there is no setting "{name}"', did_you_mean(name, _READERS))
    try:
        return _READERS[name](value)
    except ConfigError as error:
        raise ConfigError(f'task "{task}": {name}', error.problem, error.cure) from None


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ConfigError("key", f"{value!r} is no name", 'Name the argument that is the order key, e.g. key="customer"')


def _repeat(value: Any) -> Repeat:
    if value == "look":
        cure = 'Use "ask" until then: a human decides'
        raise ConfigError("repeat", 'not available in this version: "look"', cure)
    if value not in ("safe", "ask"):
        raise ConfigError("repeat", f"{value!r} is not known", 'Use "safe" or "ask"')
    return Repeat(value)


def _backoff(value: Any) -> Backoff:
    if not isinstance(value, Backoff):
        raise ConfigError("backoff", f"{value!r} is no Backoff", "Write Backoff(base=10, factor=3, cap=7200)")
    base = seconds(value.base, "backoff", least=0.001, most=DAY)
    cap = seconds(value.cap, "backoff", least=0.001, most=7 * DAY)
    return Backoff(base, number(value.factor, 1, 10), cap, _flag(value.jitter))


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ConfigError("flag", f"{value!r} is neither True nor False")


def _down(value: Any) -> tuple[type[BaseException], ...]:
    kinds = value if isinstance(value, tuple) else (value,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise ConfigError("down", f"{kind!r} is no exception class", "Write down=ConnectionError, or a tuple")
    return kinds


def _seconds(least: float, most: float) -> Callable[[Any], float]:
    return partial(seconds, where="duration", least=least, most=most)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "queue": queue_name,
    "attempts": partial(whole, least=1, most=1000),
    "crashes": partial(whole, least=1, most=100),
    "deadline": _seconds(0.001, 366 * DAY),
    "expires": _seconds(0.001, 366 * DAY),
    "timeout": _seconds(0.001, 30 * DAY),
    "key": _name,
    "repeat": _repeat,
    "priority": partial(whole, least=-100, most=100),
    "keep": _seconds(0.0, 3660 * DAY),
    "backoff": _backoff,
    "skip_dead": _flag,
    "down": _down,
}
