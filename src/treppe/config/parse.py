"""Small texts that people write in settings, read into values: durations, rates, sizes, secrets, the store.

Each function raises :class:`~treppe.errors.ConfigError` with a cure. ``where`` is then only the kind of text;
whoever reads a file names the place.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from treppe.config import Rate, Secret
from treppe.errors import ConfigError

MAX_SECRET: Final = 64 * 1024
"""No secret is longer than this many bytes."""


def duration(value: Any, where: str = "duration", *, least: float = 0.0, most: float = 3660 * 86400.0) -> float:
    """Seconds from a text such as ``"35s"``; units are ms, s, m (or min), h, d and w, the largest first.

    >>> [duration(text) for text in ("250ms", "15m", "1h30m", "14d")]
    [0.25, 900.0, 5400.0, 1209600.0]
    >>> duration(30)
    Traceback (most recent call last):
    treppe.errors.ConfigError: duration: 30 has no unit. Write it as text with a unit, e.g. "30s" or "30m"
    """
    if _is_number(value):
        cure = f'Write it as text with a unit, e.g. "{value}s" or "{value}m"'
        raise ConfigError(where, f"{value} has no unit", cure)
    seconds = _seconds(value) if isinstance(value, str) else None
    if seconds is None:
        cure = 'Write a number and a unit, e.g. "250ms", "35s", "15m", "1h30m", "14d"'
        raise ConfigError(where, f"{shown(value)} is not a duration", cure)
    if not least <= seconds <= most:
        cure = f"Choose one from {say_duration(least)} to {say_duration(most)}"
        raise ConfigError(where, f'"{value}" is out of bounds', cure)
    return seconds


def say_duration(seconds: float) -> str:
    """The other way round, for people; rounded to milliseconds.

    >>> [say_duration(seconds) for seconds in (0.25, 900, 5400, 1209600, 61.5, 0)]
    ['250ms', '15m', '1h30m', '14d', '1m1s500ms', '0s']
    """
    rest, parts = round(seconds * 1000), []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def rate(value: Any) -> Rate:
    """A number of starts per window.

    >>> rate("2/s"), rate("300/15s"), rate("100/min")
    (Rate(n=2, per=1.0), Rate(n=300, per=15.0), Rate(n=100, per=60.0))
    """
    match = re.fullmatch(r"\s*([0-9]{1,7})\s*/\s*(.{1,16}?)\s*", value) if isinstance(value, str) else None
    window = "" if match is None else match[2] if match[2][0].isdigit() else f"1{match[2]}"
    per = _seconds(window)
    if match is None or per is None:
        cure = 'Write calls per time, e.g. "2/s", "100/min", "300/15s"'
        raise ConfigError("rate", f"{shown(value)} is not a rate", cure)
    if not (1 <= int(match[1]) <= 1_000_000 and 0.001 <= per <= 31 * 86400):
        raise ConfigError("rate", f'"{value}" is out of bounds', "Choose 1 to 1000000 calls per 1ms to 31d")
    return Rate(int(match[1]), per)


def say_rate(value: Rate) -> str:
    """The other way round, for people.

    >>> say_rate(Rate(2, 1.0)), say_rate(Rate(300, 15.0))
    ('2/s', '300/15s')
    """
    per = say_duration(value.per)
    return f"{value.n}/{per[1:] if re.fullmatch('1[a-z]+', per) else per}"


def size(value: Any, least: int = 1, most: int = 1 << 30) -> int:
    """Bytes from a text such as ``"5MiB"``.

    >>> size("5MiB"), size("64 kB"), size("800B")
    (5242880, 64000, 800)
    """
    match = re.fullmatch(r"\s*([0-9]{1,12})\s*([kKMG]?i?B)\s*", value) if isinstance(value, str) else None
    if match is None:
        cure = 'Write a number and a unit, e.g. "512KiB", "5MiB", "10MB"'
        raise ConfigError("size", f"{shown(value)} is not a size", cure)
    found = int(match[1]) * _SIZES[match[2].upper()]
    if not least <= found <= most:
        raise ConfigError("size", f'"{value}" is out of bounds', f"Choose one from {least} to {most} bytes")
    return found


def whole(value: Any, least: int, most: int) -> int:
    """A whole number within its bounds.

    >>> whole(8080, 0, 65535)
    8080
    >>> whole("8080", 0, 65535)
    Traceback (most recent call last):
    treppe.errors.ConfigError: number: "8080" is a text. Write it without quotes
    """
    if isinstance(value, float):
        raise ConfigError("number", f"{value} is not a whole number", f"Choose one from {least} to {most}")
    return int(number(value, least, most))


def number(value: Any, least: float, most: float) -> float:
    """A number within its bounds.

    >>> number(3, 1.0, 10.0)
    3.0
    """
    if isinstance(value, str) and re.fullmatch(r"-?[0-9.]{1,20}", value):
        raise ConfigError("number", f'"{value}" is a text', "Write it without quotes")
    if not _is_number(value):
        raise ConfigError("number", f"{shown(value)} is not a number", f"Choose one from {least} to {most}")
    if not least <= value <= most:
        raise ConfigError("number", f"{value} is out of bounds", f"Choose one from {least} to {most}")
    return float(value)


def secret(value: Any, folder: Path | None = None) -> Secret:
    """A reference to a secret; a relative ``file:`` is looked for in *folder*. The value itself is not read yet.

    >>> secret("env:SHOP_SECRET")
    Secret(ref='env:SHOP_SECRET')
    """
    kind, _, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind == "env" and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,254}", rest):
        cure = "Use letters, digits and underscores, e.g. env:SHOP_SECRET"
        raise ConfigError("secret", "this is no name of an environment variable", cure)
    if kind not in ("env", "file", "plain") or not rest or "\0" in rest:
        cure = 'Write "env:NAME" and set the environment variable NAME, or "file:/path/to/it"'
        raise ConfigError("secret", "a secret is named here, never written down", cure)
    return Secret(f"file:{folder / rest}" if folder and kind == "file" else f"{kind}:{rest}")


def open_secret(reference: Secret) -> bytes:
    """The value behind a reference, read now. One newline at its end is taken off, as editors add it.

    >>> open_secret(Secret("plain:s3cret"))
    b's3cret'
    >>> open_secret(Secret("env:NOT_SET_ANYWHERE"))
    Traceback (most recent call last):
    treppe.errors.ConfigError: env:NOT_SET_ANYWHERE: this environment variable is not set. ...
    """
    kind, _, rest = reference.ref.partition(":")
    value = _OPEN[kind](rest)
    place = "plain:…" if kind == "plain" else reference.ref
    value = value.removesuffix(b"\n").removesuffix(b"\r")
    if not value:
        raise ConfigError(place, "this secret is empty", "Give it a value, or take it out of the settings")
    if len(value) > MAX_SECRET:
        raise ConfigError(place, f"this secret is longer than {MAX_SECRET} bytes", "Check that it is the right one")
    return value


def store_file(store: str) -> Path | None:
    """The file of a store such as ``sqlite:///treppe.db`` (four slashes before a path from the root).

    None for one that is behind a server, such as ``postgresql://app@db.example/shop``.

    >>> store_file("sqlite:////var/lib/treppe.db").as_posix()
    '/var/lib/treppe.db'
    """
    scheme, colon, rest = store.partition(":")
    kind = scheme.split("+")[-1].lower()
    if kind in _POSTGRES and re.fullmatch(r"//[^\s\0]+", rest):
        return None
    if colon and kind in _STORES_TO_COME:
        cure = 'Use store = "sqlite:///treppe.db" until then'
        raise ConfigError("store", f"not available in this version: {_STORES_TO_COME[kind]} as the store", cure)
    path = rest.removeprefix("///")
    if kind == "sqlite" and path and path != rest and not re.search(r"[?#\0]|^:memory:|/$", path):
        return Path(path)
    problem = f"{shown(without_password(store))} names no store"
    raise ConfigError(
        "store",
        problem,
        'Write "sqlite:///treppe.db", or with four slashes "sqlite:////var/lib/treppe.db", '
        'or "postgresql://user@host/database"',
    )


def without_password(url: str) -> str:
    """A URL for people to see.

    >>> without_password("postgresql://me:s3cret@db/x")
    'postgresql://me:…@db/x'
    """
    return re.sub(r"(://[^/@:]*:)[^/]*@", r"\1…@", url)


def shown(value: Any) -> str:
    """A value as it stands in a settings file, cut to a readable length."""
    words = {True: "true", False: "false"}
    text = words[value] if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "…"


_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|min|m|h|d|w)")
_SIZES: Final = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "IB": 1,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
}
_POSTGRES: Final = ("postgresql", "postgres")
_STORES_TO_COME: Final = {
    "redis": "Redis",
    "rediss": "Redis",
    "valkey": "Valkey",
    "valkeys": "Valkey",
    "sqs": "Amazon SQS",
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _seconds(text: str) -> float | None:
    """None where it cannot be read: every unit once, the largest first."""
    text = text.strip()
    parts = _PART.findall(text)
    units = [_UNITS[unit] for _, unit in parts]
    if not parts or len(text) > 32 or "".join(count + unit for count, unit in parts) != text:
        return None
    if units != sorted(set(units), reverse=True):
        return None
    return sum(float(count) * unit for (count, _), unit in zip(parts, units, strict=True))


def _from_environment(name: str) -> bytes:
    value = os.environ.get(name)
    if value is None:
        cure = f"Set it before the start: export {name}=…"
        raise ConfigError(f"env:{name}", "this environment variable is not set", cure)
    return os.fsencode(value)


def _from_file(path: str) -> bytes:
    if Path(path).exists() and not Path(path).is_file():
        raise ConfigError(f"file:{path}", "this is not a file", "Name the file that holds the secret")
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_SECRET + 3)
    except OSError as error:
        cure = "Check the path, and that the user Treppe runs as may read it"
        raise ConfigError(f"file:{path}", f"this file cannot be read ({error.strerror or error})", cure) from error


_OPEN: Final = {"env": _from_environment, "file": _from_file, "plain": str.encode}
