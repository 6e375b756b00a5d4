"""Connections: they come back after whatever happened to the server, and are not shared with a forked child."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.servers import Server, migrated, running
from treppe.demo.postgres import wait_until
from treppe.errors import StoreBusy, StoreError, StoreUnavailable
from treppe.job import NewJob
from treppe.policy.pace import Pacer
from treppe.settle import DONE, Rules, conclude
from treppe.store.postgres import PostgresStore
from treppe.store.postgres.connecting import connect, is_pooled, shown
from treppe.store.postgres.database import Database
from treppe.store.protocol import Wanted


@pytest.fixture
def database(treppe_url: str) -> Iterator[Database]:
    database = Database(treppe_url)
    yield database
    database.close()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that this test may stop and kill."""
    with running(18, fsync="on") as server:
        yield server


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL], ids=["stopped", "aborted", "killed"]
)
def test_after_a_restart_of_the_server_the_next_call_works(own_server, number):
    store = PostgresStore(own_server.url(own_server.create(migrated(own_server))))
    store.put([NewJob("before", "t", "q")])
    assert store.renew(1, 10) is False  # the connection apart is open, too
    own_server.restart(number)
    store.put([NewJob("after", "t", "q")])
    store.enlist(1, "worker", 10)
    assert store.renew(1, 10)
    assert store.backlog().accepted == 2
    store.close()


def test_while_the_server_is_away_calls_say_so_and_nothing_hangs(own_server):
    name = own_server.create(migrated(own_server))
    store = PostgresStore(own_server.url(name))
    store.put([NewJob("a", "t", "q")])
    own_server.stop()
    for call in (store.backlog, lambda: store.put([NewJob("b", "t", "q")]), lambda: store.renew(1, 10), store.migrate):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match=f"postgresql://postgres@127.0.0.1:{own_server.port}/{name}"):
            call()
        assert time.monotonic() - began < 5
    own_server.start()
    assert store.backlog().accepted == 1
    store.close()


def test_a_session_that_the_server_ends_is_replaced(database, postgres18):
    (pid,) = database.once("SELECT pg_backend_pid()")[0]
    postgres18.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
    assert database.once("SELECT pg_backend_pid()")[0][0] != pid


def test_a_session_that_ends_in_the_middle_of_a_transaction_is_told_and_replaced(database, postgres18):
    def work(tx):
        (pid,) = tx.rows("SELECT pg_backend_pid()")[0]
        postgres18.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
        return tx.rows("SELECT 1")

    with pytest.raises(StoreUnavailable):
        database.write(work)
    assert database.once("SELECT 1") == [(1,)]


def test_a_transaction_that_fails_leaves_its_connection_usable_and_nothing_written(database):
    def work(tx):
        tx.run("INSERT INTO treppe.value (name, value) VALUES ('a', '')")
        tx.rows("SELECT 1 / 0")

    with pytest.raises(StoreError, match="division by zero"):
        database.write(work)
    assert database.once("SELECT name FROM treppe.value") == []


def test_two_that_get_into_each_others_way_are_both_done(database):
    for name in "ab":
        database.once("INSERT INTO treppe.value (name, value) VALUES ($1, '')", (name,))
    first_steps = threading.Barrier(2)

    def work(order):
        tries = []

        def change(tx):
            tries.append(order)
            for name in order:
                tx.run("UPDATE treppe.value SET value = value || '\\x61' WHERE name = $1", (name,))
                if len(tries) == 1 and name == order[0]:
                    first_steps.wait(10)

        database.write(change)

    threads = [threading.Thread(target=work, args=(order,)) for order in ("ab", "ba")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert database.once("SELECT value FROM treppe.value ORDER BY name") == [(b"aa",), (b"aa",)]


def test_what_waits_too_long_for_a_lock_says_that_somebody_is_in_the_way(database, treppe_url):
    with psycopg.connect(treppe_url) as other:
        other.execute("LOCK treppe.value")

        def work(tx):
            tx.rows("SELECT set_config('lock_timeout', '50ms', true)")
            tx.rows("SELECT 1 FROM treppe.value")

        with pytest.raises(StoreBusy, match="another transaction is in the way"):
            database.write(work)


def test_renewals_do_not_wait_for_those_who_use_every_connection(treppe_url):
    store = PostgresStore(treppe_url, connections=1)
    store.enlist(7, "worker", 10)
    inside, go_on = threading.Event(), threading.Event()

    def occupy(tx):
        inside.set()
        go_on.wait(20)

    thread = threading.Thread(target=store._database.write, args=(occupy,))
    thread.start()
    assert inside.wait(10)
    try:
        assert store.renew(7, 10)
        assert store.settle([]) == ()
    finally:
        go_on.set()
        thread.join(20)
    store.close()


def test_a_renewal_does_not_wait_for_a_settle_that_waits_for_a_lock(treppe_url):
    store = PostgresStore(treppe_url)
    store.enlist(7, "worker", 10)
    store.put([NewJob("a", "t", "q")])
    claimed = store.claim(Wanted(7, 1, 1, frozenset({"t"})), Pacer({}))
    ended = [conclude(claimed.claims[0], DONE, Rules(), 0.0, 0.0)]
    with psycopg.connect(treppe_url) as other:
        other.execute("SELECT seq FROM treppe.live FOR UPDATE")
        settling = threading.Thread(target=store.settle, args=(ended,))
        settling.start()
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        wait_until(lambda: store._database.once(waiting)[0][0], "the settle waits")
        renewals = [store.renew(7, 10) for _ in range(3)]
        assert settling.is_alive()
    settling.join(20)
    assert renewals == [True] * 3
    assert store.backlog().done == 1
    store.close()


def test_no_more_connections_are_open_than_allowed(treppe_url):
    database = Database(treppe_url, size=3)
    together, most = threading.Barrier(8), []

    def work(tx):
        most.append(tx.rows("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")[0][0])

    def run():
        together.wait(10)
        for _ in range(5):
            database.write(work)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    database.close()
    assert len(most) == 40
    assert max(most) <= 3


FORKED = """
import os, sys
from treppe.job import NewJob
from treppe.store.bell import Bell
from treppe.store.postgres import PostgresStore
store = PostgresStore(sys.argv[1])
store.put([NewJob("parent", "t", "q")])
store.renew(1, 10)
store.wait(0.0, Bell())
with store._database._opened.renewing.lock:  # as if another thread renewed at this very moment
    child = os.fork()
    if not child:
        store.renew(1, 10)
        store.wait(0.0, Bell())
        store.put([NewJob("child", "t", "q")])
        store.close()
        os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
store.put([NewJob("parent again", "t", "q")])
assert not store.renew(1, 10)
assert store.backlog().accepted == 3
store.close()
"""


def test_a_forked_child_opens_connections_of_its_own(treppe_url):
    subprocess.run([sys.executable, "-c", FORKED, treppe_url], check=True, timeout=60)


def test_a_forked_child_that_ends_plainly_leaves_its_parents_connections_alone(treppe_url):
    script = FORKED.replace("os._exit(0)", "sys.exit(0)").replace("store.close()\n        ", "")
    subprocess.run([sys.executable, "-c", script, treppe_url], check=True, timeout=60)


def test_it_is_seen_when_a_pooler_is_in_between(postgres18, pgbouncer):
    for url, pooled in ((postgres18.url(), False), (postgres18.socket_url(), False), (pgbouncer.url(), True)):
        with connect(url) as connection:
            assert is_pooled(connection) is pooled


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "pooled"])
def test_nothing_waits_for_ever(postgres18, pgbouncer, pooled):
    database = Database((pgbouncer if pooled else postgres18).url())
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    ask = "SELECT " + ", ".join(f"current_setting('{name}')" for name in names)
    assert database.once(ask) == database.write(lambda tx: tx.rows(ask)) == [("30s", "10s", "1min")]
    assert database.once_apart(ask) == database.read(lambda tx: tx.rows(ask)) == [("30s", "10s", "1min")]
    database.close()


def test_who_we_are_is_told_to_the_server(database):
    assert database.once("SELECT current_setting('application_name')") == [("treppe",)]


def test_a_connection_of_another_time_zone_or_encoding_changes_nothing(treppe_url):
    store = PostgresStore(treppe_url + "&options=-c%20TimeZone%3DAsia/Tokyo%20-c%20DateStyle%3DGerman")
    assert abs(store.now() - time.time()) < 60
    store.put([NewJob("ä€😀", "t", "q")])
    assert store.get("ä€😀").id == "ä€😀"
    store.close()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://postgres:hunter2@127.0.0.1:1/shop", "postgresql://postgres@127.0.0.1:1/shop: .*refused"),
        ("postgresql://nowhere.invalid/shop", "postgresql://nowhere.invalid/shop: "),
    ],
)
def test_a_server_that_cannot_be_reached_is_named_without_the_password(url, sentence):
    with pytest.raises(StoreUnavailable, match=sentence) as told:
        Database(url).once("SELECT 1")
    assert "hunter2" not in str(told.value)


def test_a_database_or_a_role_that_is_not_there_is_told(postgres18):
    with pytest.raises(StoreUnavailable, match=r'database "nobody" does not exist\. Make it: createdb nobody$'):
        Database(postgres18.url("nobody")).once("SELECT 1")


def test_a_role_that_may_not_is_told_who_can_help(postgres18, treppe_url):
    postgres18.execute("DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN")
    store = PostgresStore(treppe_url.replace("postgres@", "poor@"))
    for call in (store.backlog, store.migrate, lambda: store.put([NewJob("a", "t", "q")])):
        with pytest.raises(
            StoreError, match=r"permission denied .*\. Let the owner of the tables grant what is missing"
        ):
            call()
    store.close()
    postgres18.execute("DROP ROLE poor")


def test_tables_that_are_not_there_are_told_with_the_cure(postgres_url):
    store = PostgresStore(postgres_url)
    for call in (store.backlog, lambda: store.put([NewJob("a", "t", "q")])):
        with pytest.raises(StoreError, match="Run: treppe migrate"):
            call()
    store.close()


def test_a_database_is_written_down_without_what_is_secret():
    assert shown("postgresql:///shop") == "postgresql:///shop"
    assert shown("postgres://ada:pw@db:5433/shop?sslpassword=x") == "postgresql://ada@db:5433/shop"
    assert "pw" not in shown("postgresql://db/shop?password=pw")


def test_nothing_stays_open_after_a_close(treppe_url, postgres18):
    store = PostgresStore(treppe_url)
    store.put([NewJob("a", "t", "q")])
    store.renew(1, 10)
    store.close()
    name = treppe_url.partition("?")[0].rpartition("/")[2]
    end = time.monotonic() + 10
    while postgres18.execute(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'") != [(0,)]:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert os.getpid() == store._database._opened.pid
