"""What the figures were made with: versions and cores, and what a commit costs on this disk."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import msgspec

from bench import peers

OTHERS = ("starlette", "uvicorn", "httptools", "uvloop")
FSYNCS = 200


class About(msgspec.Struct):
    """``fsync_ms`` is the median time until 4 KiB are on the disk that the measures use."""

    python: str
    system: str
    cores: int
    sqlite: str
    fsync_ms: float
    packages: dict[str, str]


def about(folder: Path) -> About:
    """Look at this machine."""
    named = {package for name in peers.names() if name not in peers.absent() for package in peers.peer(name).packages}
    return About(
        f"{platform.python_implementation()} {platform.python_version()}",
        f"{platform.system()} {platform.machine()}",
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        sqlite3.sqlite_version,
        fsync_ms(folder),
        {package: found for package in sorted({*named, *OTHERS}) if (found := _version_of(package))},
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
