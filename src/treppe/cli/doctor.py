"""What ``treppe doctor`` looks at. Each examination is small, changes nothing, and ends in one line."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from treppe.cli import EXTRAS, commits, preflight
from treppe.cli.commits import Level, Result
from treppe.cli.house import House
from treppe.config import Settings
from treppe.config.parse import say_duration, store_file
from treppe.config.rules.store import disk_kind
from treppe.errors import ConfigError, TreppeError
from treppe.store.protocol import Store

FULL: Final = 0.05
"""Below this share of free disk the door answers 503."""

OUR_OWN_FILES: Final = 256
"""Open files beside the door's connections: the store, deliveries, logs."""

SLOW: Final = 1.0
"""Seconds after which an answer of the store is worth a warning."""

OLD_SNAPSHOT: Final = 300.0
"""Seconds that a transaction on the store's server may be open."""

SKEW: Final = 5.0
"""Seconds that two clocks may differ."""


def examine(house: House) -> list[Result]:
    """The whole report. Without settings only the machine is looked at."""
    results = [*_python(), *_extras()]
    try:
        settings = house.settings
    except ConfigError as error:
        return [*results, Result("fail", "settings", str(error))]
    return [*results, *_settings(settings, house.path), *_disk(settings), *_limits(settings), *_store(house)]


def _python() -> Iterator[Result]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 11):  # noqa: UP036 (an installed package may be run by another Python)
        yield Result("fail", "python", version, "Install Python 3.11 or newer")
    else:
        yield Result("ok", "python", version)
    if sqlite3.sqlite_version_info < (3, 35):
        yield Result("fail", "sqlite", sqlite3.sqlite_version, "Install SQLite 3.35 or newer")
    else:
        yield Result("ok", "sqlite", sqlite3.sqlite_version)


def _extras() -> Iterator[Result]:
    for extra in sorted(set(EXTRAS.values()) - {"postgres"}):  # told under settings, where it is needed
        missing = [module for module, brings in EXTRAS.items() if brings == extra and find_spec(module) is None]
        if missing:
            cure = f'Needed for treppe up: pip install "treppe[{extra}]"'
            yield Result("warn", f"extra {extra}", f"{', '.join(missing)} not installed", cure)
        else:
            yield Result("ok", f"extra {extra}", "installed")


def _settings(settings: Settings, path: Path) -> Iterator[Result]:
    found = [finding for finding in preflight.findings(settings, path) if finding.level != "hint"]
    for finding in found:
        level: Level = "fail" if finding.level == "error" else "warn"
        yield Result(level, "settings", f"{finding.place}: {finding.text}", finding.cure)
    if not any(finding.level == "error" for finding in found):
        yield Result("ok", "settings", f"{path} is fine, and every secret can be opened")


def _disk(settings: Settings) -> Iterator[Result]:
    try:
        file = store_file(settings.store)
        if file is None:
            return  # the server's own matter
        folder = file.absolute().parent
        usage = shutil.disk_usage(folder)
    except (ConfigError, OSError):
        return  # told under settings
    free = usage.free / usage.total
    text = f"{free:.0%} free ({usage.free // (1 << 20)} MiB) at {folder}"
    if free < FULL:
        yield Result("fail", "disk", text, "Make room: below 5 % nothing is accepted any more")
    else:
        yield Result("ok" if free > 2 * FULL else "warn", "disk", text, "" if free > 2 * FULL else "Make room soon")
    if disk_kind(folder) == "overlay":
        yield Result("warn", "disk", "the store lies in a container and goes with it", "Put it on a volume")


def _limits(settings: Settings) -> Iterator[Result]:
    try:
        import resource
    except ImportError:  # Windows
        return
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.web.max_connections + OUR_OWN_FILES
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        cure = f"Raise it to {needed} (ulimit -n {needed}), or lower max_connections under [web]"
        yield Result("warn", "open files", f"only {allowed} allowed", cure)
    else:
        count = "any number" if allowed == resource.RLIM_INFINITY else allowed
        yield Result("ok", "open files", f"{count} allowed")


def _store(house: House) -> Iterator[Result]:
    path = store_file(house.settings.store)
    if not (house.without_file or path is None or path.exists()):
        yield Result("ok", "store", f"{path} is not there yet; the first start makes it")
        return
    try:
        with house.store(migrate=False) as store:
            yield from (look(store) for look in _LOOKS)
            yield from _server(store)
            yield from commits.examine(house, store)
    except TreppeError as error:
        yield Result("fail", "store", str(error))


def _server(store: Store) -> Iterator[Result]:
    """What a database server is set to, where the store is on one."""
    ask = getattr(store, "server", None)
    if ask is None:
        return
    server = ask()
    yield Result("ok", "server", f"PostgreSQL {server.version}")
    if server.pooled:
        cure = "Give the workers a direct connection, if picking up within milliseconds matters"
        yield Result("warn", "wake-up", "a pooler is in between: workers are not told of new jobs, they ask", cure)
    if server.fsync != "on" or server.synchronous_commit == "off":
        text = f"fsync = {server.fsync}, synchronous_commit = {server.synchronous_commit}"
        yield Result("warn", "durability", f"{text}: accepted jobs can be lost", "Set both to on")
    if server.snapshot_age > OLD_SNAPSHOT:
        text = f"a transaction is open for {say_duration(round(server.snapshot_age))}: nothing is cleaned up behind it"
        yield Result("warn", "vacuum", text, "Find it in pg_stat_activity by backend_xmin, and end it")
    if server.plans:
        yield Result("warn", "plans", "; ".join(server.plans), "Compare the tables and indexes with: treppe sql")
    else:
        yield Result("ok", "plans", "every statement that workers run finds its rows by an index")
    for role in server.careless:
        text = f'"{role}" commits with synchronous_commit = off: what it enqueues in its own transactions can be lost'
        yield Result("warn", "commits", text, f"ALTER ROLE {role} SET synchronous_commit = on")


def _reachable(store: Store) -> Result:
    started = time.perf_counter()
    backlog = store.backlog()
    took = time.perf_counter() - started
    text = f"answers in {took * 1000:.0f} ms, {backlog.open} jobs open, {backlog.total('dead')} dead"
    if took > SLOW:
        return Result("warn", "store", text, "Look at its disk and its load")
    return Result("ok", "store", text)


def _durability(store: Store) -> Result:
    cure = "" if store.can.survives_power_loss else "Use it for tests only"
    return Result("ok" if store.can.survives_power_loss else "warn", "durability", store.can.durability, cure)


def _clock(store: Store) -> Result:
    if time.time() < _LATER_THAN_THIS:
        return Result("fail", "clock", f"this machine believes it is {time.strftime('%Y-%m-%d')}", "Set the clock")
    skew = abs(store.now() - time.time())
    if skew > SKEW:
        text = f"the store's clock and ours differ by {say_duration(skew)}"
        return Result("warn", "clock", text, "Set up NTP on both")
    return Result("ok", "clock", "right, as far as one can see from here")


_LATER_THAN_THIS: Final = 1_760_000_000
_LOOKS: Final[tuple[Callable[[Store], Result], ...]] = (_reachable, _durability, _clock)
