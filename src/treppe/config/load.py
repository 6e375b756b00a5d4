"""Reads ``treppe.toml``. Every problem is collected, and all of them are told together.

``load`` looks at spelling, bounds and names; whether the settings make sense is for :mod:`treppe.config.check`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from treppe.config import Settings
from treppe.config.finding import Finding, lines_of
from treppe.config.grammar import grammar
from treppe.config.shape import Reader
from treppe.config.words import did_you_mean
from treppe.errors import ConfigError

MAX_FILE: Final = 1024 * 1024
"""No settings file is longer than this many bytes."""


def load(path: Path | str) -> Settings:
    """The settings of a file, or one ConfigError that names every problem with its line and its cure.

    Relative paths inside (the store, ``file:`` secrets) start at the file's folder.
    """
    settings, findings = read(path)
    if len(findings) == 1:
        only = findings[0]
        raise ConfigError(f"{path}, {only.place}", only.text, only.cure)
    if findings:
        raise ConfigError(str(path), f"{len(findings)} problems" + "".join(f"\n  {finding}" for finding in findings))
    return settings


def read(path: Path | str) -> tuple[Settings, list[Finding]]:
    """The settings as far as they could be read, and what was wrong. A file that is no TOML raises ConfigError."""
    path = Path(path)
    text = _text_of(path)
    try:
        raw = {"store": Settings().store} | tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _not_toml(path, text, str(error)) from error
    reader = Reader(lines_of(text))
    settings = _inherit(reader.read(grammar(path.absolute().parent), raw), raw)
    _check_names(settings, raw, reader)
    return settings, sorted(reader.findings, key=lambda finding: finding.line or 0)


_UNQUOTED: Final = re.compile(r"\s*([\w.-]+)\s*=\s*(?:[^\s\"'\[{0-9-]|[0-9]+\s*[a-zA-Z/])")


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE + 1)
    except FileNotFoundError as error:
        raise ConfigError(str(path), "there is no such file", "Make one with: treppe init") from error
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read ({error.strerror})", "Name a file that you may read") from error
    if len(content) > MAX_FILE:
        raise ConfigError(str(path), f"longer than {MAX_FILE} bytes", "Check that this is the settings file")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}", "this is not UTF-8", "Save the file as UTF-8") from error


def _not_toml(path: Path, text: str, message: str) -> ConfigError:
    """The parser's words, with the place in front and the cure that is most often right."""
    place = re.search(r"\(at line (\d+), column \d+\)", message)
    number = int(place[1]) if place else len(text.splitlines())
    line = text.splitlines()[number - 1] if 0 < number <= len(text.splitlines()) else ""
    problem = re.sub(r"\s*\(at .*\)", "", message)
    twice = "twice" in problem or "overwrite" in problem
    unquoted = _UNQUOTED.match(line)
    if twice:
        cure = "A name can be used once only: rename one, or put both together"
    elif unquoted:
        cure = f'A text needs quotes: {unquoted[1]} = "…"'
    else:
        cure = "Check quotes, brackets and commas in this line and the one before"
    return ConfigError(f"{path}, line {number}", f"this is not TOML: {problem}", cure)


def _inherit(settings: Settings, raw: dict[str, Any]) -> Settings:
    """A source without a ``keep`` of its own takes the one at the top."""
    sources = {
        name: source if "keep" in raw["source"][name] else replace(source, keep=settings.keep)
        for name, source in settings.sources.items()
    }
    return replace(settings, sources=sources)


def _check_names(settings: Settings, raw: dict[str, Any], reader: Reader) -> None:
    """Names that lead to another table must lead somewhere, even if that table is wrong in itself."""
    destinations, queues = _names(raw, "destination"), _names(raw, "queue")
    for source in settings.sources.values():
        for name in source.send_to:
            if name not in destinations:
                cure = did_you_mean(name, destinations, f"Add a table [destination.{name}]")
                reader.wrong(f"source.{source.name}.send_to", f'there is no destination "{name}"', cure)
    for destination in settings.destinations.values():
        queue = destination.pace_queue
        if queue not in queues | destinations and not _by_pattern(queue, queues):
            cure = did_you_mean(queue, queues | destinations - {destination.name}, f"Add a table [queue.{queue}]")
            reader.wrong(f"destination.{destination.name}.queue", f'there is no queue "{queue}"', cure)


def _names(raw: dict[str, Any], kind: str) -> frozenset[str]:
    tables = raw.get(kind)
    return frozenset(tables) if isinstance(tables, dict) else frozenset()


def _by_pattern(queue: str, queues: frozenset[str]) -> bool:
    return any(name.endswith("*") and queue.startswith(name[:-1]) for name in queues)
