"""Faults that other queues had in public, of their whole kind, where no other test shows that they cannot happen here.

``docs/others-bugs.md`` has the list.
"""

import re
import signal
import threading
import time

import psycopg
import pytest

from tests.servers import migrated, running
from treppe.job import NewJob, State
from treppe.store.bell import Bell
from treppe.store.postgres import PostgresStore, keeping
from treppe.store.postgres.database import SQL
from treppe.store.postgres.listening import CHANNEL, Herald
from treppe.testing.contract.base import together, until
from treppe.testing.contract.verbs import (
    ALICE,
    BOB,
    FOREVER,
    by_policy,
    claim,
    claim_ids,
    claim_one,
    finish,
    job,
    new_worker,
    put,
    put_many,
    read,
    state,
    upkeep,
)


def lapse_as_seen_earlier(store, *seqs):
    """Upkeep looked a while ago, and writes now; how many jobs it took back."""
    return store._database.write(lambda tx: keeping._lapse(tx, list(seqs), by_policy))


def test_what_was_finished_since_upkeep_looked_stays_done(store):
    """A rescuer turned finished jobs back (river#1302)."""
    put(store, "a")
    taken = claim_one(store, worker=new_worker(store))
    store.retire(taken.worker)
    finish(store, taken)
    assert lapse_as_seen_earlier(store, taken.seq) == 0
    assert state(store, "a") is State.DONE


def test_what_somebody_else_took_since_upkeep_looked_stays_theirs(store):
    put(store, "a")
    lost = claim_one(store, worker=new_worker(store))
    store.retire(lost.worker)
    assert upkeep(store).lapsed == 1
    again = claim_one(store, alone=True)
    assert lapse_as_seen_earlier(store, lost.seq) == 0
    assert (state(store, "a"), again.worker) == (State.RUNNING, ALICE)
    finish(store, again)


def test_what_was_claimed_since_upkeep_looked_does_not_expire(store):
    put(store, "a", expires=0.2)
    taken = claim_one(store)
    until(lambda: store.now() > read(store, "a").expires_at)
    assert store._database.write(lambda tx: keeping._expire(tx, [taken.seq])) == 0
    finish(store, taken)


@pytest.mark.parametrize("wrong", [3600.0, -3600.0, 10 * 365 * 86400.0])
def test_a_machine_whose_clock_is_wrong_takes_nothing_from_others(store, monkeypatch, wrong):
    """A replica whose clock was ahead found the leases of all others expired (db-scheduler#364, flux#430)."""
    put(store, "theirs")
    theirs = claim_one(store, worker=new_worker(store, lease=60))
    put(store, "later", delay=60)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + wrong)
    store.enlist(BOB, "on the other machine", 60)
    put(store, "mine")
    assert upkeep(store).lapsed == 0
    assert claim_ids(store, worker=BOB) == ["mine"]
    assert abs(read(store, "mine").created_at - right()) < 30
    finish(store, theirs)


def test_what_runs_is_not_handed_out_again_when_the_server_comes_back():
    """Locks of sessions vanish with the server; a lease is a row (que#110, good_job#52)."""
    with running(18, fsync="on") as server:
        store = PostgresStore(server.url(server.create(migrated(server))))
        store.enlist(ALICE, "alice", FOREVER)
        store.enlist(BOB, "bob", FOREVER)
        put(store, "a", "b", key="k")
        taken = claim_one(store)
        server.restart(signal.SIGKILL)
        assert claim_ids(store, worker=BOB) == []
        assert upkeep(store).lapsed == 0
        finish(store, taken)
        assert claim_ids(store, worker=BOB) == ["b"]
        store.close()


@pytest.mark.parametrize("name", SQL)
def test_no_statement_leaves_anything_in_its_session(name):
    """Behind a pooler the next statement may run in another one (good_job#985, netbox#23009)."""
    sql = re.sub(r"--.*", "", SQL[name])
    assert not re.search(r"pg_(try_)?advisory_(un)?lock|\b(TEMP|TEMPORARY|LISTEN|PREPARE|CURSOR)\b", sql, re.IGNORECASE)
    outside_updates = re.sub(r"UPDATE.*?\bSET\b", "", sql, flags=re.DOTALL)
    assert not re.search(r"\bSET\s+(?!LOCAL\b)\w+\s*(=|TO)\s", outside_updates, re.IGNORECASE)
    assert all(scope == "true" for scope in re.findall(r"set_config\([^)]*,\s*(\w+)\)", sql))


def test_the_tables_carry_no_triggers_and_no_costly_indexes(store):
    """A NOTIFY from a row trigger was the ceiling of all commits (graphile#552); a GIN index weighed 4 GB (que#240)."""
    ours = "c.relnamespace = 'treppe'::regnamespace"
    triggers = f"SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE {ours} AND NOT t.tgisinternal"
    kinds = f"SELECT DISTINCT a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE {ours} AND c.relkind = 'i'"
    assert store._database.once(triggers) == []
    assert store._database.once(kinds) == [("btree",)]


def test_rounds_of_upkeep_side_by_side_never_deadlock(store, postgres18):
    """Two maintenance statements locked the same rows in other orders (pg-boss#282, #133)."""
    put_many(store, 300, "expired", expires=0.001)
    put_many(store, 300, "forgotten", queue="old", keep=0.0)
    finish(store, *claim_all(store, ALICE, "old"))
    put_many(store, 300, "lost", queue="lost")
    for worker in (new_worker(store), new_worker(store), new_worker(store)):
        claim(store, 100, worker=worker, queues=("lost",))
        store.retire(worker)
    done = []
    together(*[lambda: done.append(upkeep(store))] * 6)
    assert [sum(getattr(each, name) for each in done) for name in ("lapsed", "expired", "forgotten")] == [300] * 3
    database = store._database.once("SELECT current_database()")[0][0]
    assert postgres18.execute(f"SELECT deadlocks FROM pg_stat_database WHERE datname = '{database}'") == [(0,)]


def claim_all(store, worker, queue):
    taken = []
    while more := claim(store, worker=worker, queues=(queue,)).claims:
        taken += more
    return taken


@pytest.mark.parametrize("call", [claim, lambda store: store.renew(ALICE, FOREVER)], ids=["claim", "renew"])
def test_a_worker_that_never_waits_does_not_stop_the_server(store, postgres18, call):
    """Notifications that nobody reads fill the line, and the server waits for ever to write the next one."""
    bell = Bell()
    store.wait(0.0, bell)
    ear = store._waiters.listener._ear.info.backend_pid
    database = store._database.once("SELECT current_database()")[0][0]
    with psycopg.connect(postgres18.socket_url(database), autocommit=True) as connection:
        for n in range(500):
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"{n}-{'x' * 3000}"))
    asleep = f"SELECT wait_event = 'ClientRead' AND backend_xmin IS NULL FROM pg_stat_activity WHERE pid = {ear}"
    assert postgres18.execute(asleep) == [(False,)]
    until(lambda: call(store) and postgres18.execute(asleep) == [(True,)])
    bell.close()


def test_a_process_whose_workers_have_ended_listens_no_more(store):
    bell = Bell()
    store.enlist(BOB, "bob", 10)
    store.wait(0.0, bell)
    store.retire(BOB)
    assert store._waiters.listener.fd is None
    store._looked = store._rung
    store._waiters.listener._next_try = 0.0
    store.wait(0.0, bell)
    assert store._waiters.listener.fd is not None
    bell.close()


def test_a_worker_that_goes_on_waiting_listens_anew(store, postgres18):
    """Of two in one process one ends; the other is told of work as before."""
    bell, woken = Bell(), threading.Event()
    store.wait(0.0, bell)
    waiting = threading.Thread(target=lambda: (store.wait(30.0, bell), woken.set()))
    store._waiters.listener._stirred = time.monotonic() - 1000
    claim(store)
    waiting.start()
    store.retire(BOB)
    assert woken.wait(10)
    waiting.join()
    bell.close()


def test_a_word_that_may_never_be_heard_silences_no_other():
    """A leader believed in what had been rolled back (oban#1488); a caller's transaction may be rolled back, too."""
    herald, some = Herald(), [NewJob("a", "t", "mail")]
    assert [herald.word_of_others(some) for _ in range(3)] == ["mail"] * 3
    assert [herald.word(some), herald.word(some), herald.word_of_others(some)] == ["mail", None, "mail"]


def test_one_key_that_cannot_go_on_keeps_no_other_from_it(store):
    """One row in conflict stopped the staging of all (river#619, procrastinate#1543)."""
    put(store, "dead head", "behind it", key="stuck")
    (head,) = claim(store).claims
    for n in range(5):
        store.put([job(f"{n}-first", key=f"k{n}"), job(f"{n}-second", key=f"k{n}")])
    firsts = claim(store).claims
    claim(store)
    finish(store, *firsts)
    assert sorted(claim_ids(store)) == [f"{n}-second" for n in range(5)]
    assert read(store, "behind it").behind == head.id
