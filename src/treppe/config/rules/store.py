"""Can the store live where the settings put it?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from treppe.config import Settings
from treppe.config.finding import Finding
from treppe.config.parse import store_file, without_password
from treppe.errors import ConfigError

NETWORK: Final = frozenset(
    (
        "9p",
        "afs",
        "ceph",
        "cifs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
    )
) | {"smb2", "smb3", "smbfs"}
"""Kinds of file systems on which SQLite's locks and WAL do not hold (sqlite.org/wal.html, "shared memory")."""


def findings(settings: Settings) -> Iterator[Finding]:
    """The store is one this version knows, on a disk that lasts, in a file that is ours."""
    try:
        path = store_file(settings.store)
    except ConfigError as error:
        yield Finding("error", "store", error.problem, error.cure)
        return
    if path is None:
        yield from _of_server(settings.store)
    else:
        yield from _of_disk(disk_kind(path.absolute()))
        yield from _of_file(path.absolute())


def disk_kind(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The kind of file system a path is on, e.g. ``ext4``; "" where the system does not tell (no Linux)."""
    try:
        lines = [line.split() for line in mounts.read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    points = {_plain(line[1]): line[2] for line in lines if len(line) > 2}
    real = path.resolve()
    return next((points[str(place)] for place in (real, *real.parents) if str(place) in points), "")


def _plain(mount_point: str) -> str:
    return mount_point.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def _of_server(url: str) -> Iterator[Finding]:
    if find_spec("psycopg") is None:
        yield Finding("error", "store", "PostgreSQL needs its driver", 'Run: pip install "treppe[postgres]"')
    if without_password(url) != url:
        text = "the password is written down here"
        yield Finding("hint", "store", text, 'Keep it in ~/.pgpass, or write store = "env:DATABASE_URL"')


def _of_disk(kind: str) -> Iterator[Finding]:
    if kind in NETWORK:
        text = f"SQLite cannot be trusted on a network file system ({kind})"
        yield Finding("error", "store", text, "Put the file on a local disk")
    elif kind in ("tmpfs", "ramfs"):
        text = "this file is kept in memory only, and is gone after a restart of the machine"
        yield Finding("warning", "store", text, "Put the file on a disk that lasts")


def _of_file(path: Path) -> Iterator[Finding]:
    if not path.parent.is_dir():
        yield Finding("error", "store", f"the folder {path.parent} does not exist", f"Make it: mkdir -p {path.parent}")
    elif path.is_dir():
        yield Finding("error", "store", f"{path} is a folder", "Name a file in it, e.g. treppe.db")
    elif not os.access(path if path.exists() else path.parent, os.R_OK | os.W_OK):
        cure = "Let the user that Treppe runs as read and write the file and its folder"
        yield Finding("error", "store", f"{path} may not be written", cure)
    elif path.exists() and not _is_sqlite(path):
        yield Finding(
            "error", "store", f"{path} is not an SQLite database", "Name another file; this one is left as it is"
        )


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) in (b"", b"SQLite format 3\0")
