"""What the figures were made with: versions, settings and cores, and what a commit costs on this disk."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import msgspec

from bench import peers
from bench.grounds import SETTINGS, Ground

OTHERS = ("starlette", "uvicorn", "httptools", "uvloop")
FSYNCS = 200


class About(msgspec.Struct):
    """``fsync_ms`` is the median time until 4 KiB are on the disk that the measures use; ``settings`` the server's."""

    python: str
    system: str
    cores: int
    store: str
    fsync_ms: float
    packages: dict[str, str]
    peers: dict[str, str] = {}
    settings: dict[str, str] = {}


def about(folder: Path, ground: Ground) -> About:
    """Look at this machine."""
    found = {name: peers.peer(name) for name in peers.names(ground.store) if name not in peers.absent(ground.store)}
    named = {package for one in found.values() for package in one.packages}
    return About(
        f"{platform.python_implementation()} {platform.python_version()}",
        f"{platform.system()} {platform.machine()}",
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        ground.version,
        fsync_ms(folder),
        {package: there for package in sorted({*named, *OTHERS}) if (there := _version_of(package))},
        {name: str(one.needs) for name, one in found.items() if one.needs},
        {} if ground.store == "sqlite" else SETTINGS,
    )


def fsync_ms(folder: Path) -> float:
    """Median milliseconds to append 4 KiB to a file and have it on disk."""
    times = []
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return median(times) * 1000


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
