"""A worker without work asks little, and an idle one is not forgotten."""

import psycopg
import pytest

from treppe.job import Repeat, State
from treppe.store.postgres.keeping import BUSY, IDLE
from treppe.testing.contract.base import together
from treppe.testing.contract.verbs import (
    by_policy,
    claim,
    claim_ids,
    claim_one,
    finish,
    handed_over,
    new_worker,
    put,
    put_many,
    state,
)


@pytest.fixture
def asked(store, monkeypatch):
    """The statements that are sent outside of transactions; a transaction fails."""
    statements, once = [], store._database.once
    monkeypatch.setattr(store._database, "write", lambda work: pytest.fail("a transaction was begun"))
    monkeypatch.setattr(store._database, "once", lambda sql, params=(): statements.append(sql) or once(sql, params))
    return statements


def make_idle(store):
    for queue in range(100):
        put(store, f"later-{queue}", queue=f"queue-{queue}", delay=3600)
    assert claim_ids(store) == []


def test_an_idle_claim_is_one_statement_however_many_queues_there_are(store, request):
    make_idle(store)
    asked = request.getfixturevalue("asked")
    told = claim(store)
    assert (told.claims, len(asked)) == ((), 1)
    assert 0 < told.next_in <= 3600


def test_a_round_of_upkeep_that_finds_nothing_is_one_statement(store, request):
    make_idle(store)
    store.upkeep(by_policy)
    asked = request.getfixturevalue("asked")
    done = store.upkeep(by_policy)
    assert (done.more, len(asked)) == (False, 1)


def test_an_idle_worker_finds_what_comes(store):
    make_idle(store)
    assert claim_ids(store) == []
    put(store, "now")
    assert claim_ids(store) == ["now"]


def test_who_only_looks_locks_nothing(store):
    """A row lock is a write: it would cost a flush of the log each time."""
    worker = new_worker(store)
    make_idle(store)
    store.renew(worker, 60.0)
    assert claim_ids(store, worker=worker) == []
    assert store._database.once("SELECT xmax::text FROM treppe.worker WHERE id = $1", (worker,)) == [("0",)]


def test_a_worker_that_was_told_of_a_job_takes_it_in_one_round_trip(store, monkeypatch):
    worker = new_worker(store)
    put(store, "a")
    finish(store, claim_one(store))
    assert claim_ids(store) == []
    put(store, "b")
    trips, pipeline = [], psycopg.Connection.pipeline
    monkeypatch.setattr(psycopg.Connection, "pipeline", lambda self: trips.append(1) or pipeline(self))
    monkeypatch.setattr(store._database, "once", lambda *_: pytest.fail("it asked first"))
    monkeypatch.setattr(store._claimer, "_claim", lambda *_: pytest.fail("it looked everywhere"))
    told = claim(store, worker=worker)
    assert [one.id for one in told.claims] == ["b"]
    assert told.next_in < 0.1  # the other queues
    assert len(trips) == 1


def test_a_worker_that_was_told_finds_what_is_not_where_the_last_job_was(store):
    put(store, "a")
    finish(store, claim_one(store))
    for n, other in enumerate([{"queue": "other"}, {"priority": 3}, {"key": "k"}, {"repeat": Repeat.ASK}, {}]):
        assert claim_ids(store) == []
        put(store, f"b{n}", **other)
        assert claim_ids(store) == [f"b{n}"]


def test_an_idle_worker_finds_suspects(store):
    make_idle(store)
    put(store, "a")
    dead = new_worker(store)
    claim_one(store, worker=dead)
    assert claim_ids(store) == []
    store.retire(dead)
    assert store.upkeep(by_policy).lapsed == 1
    told = claim(store)
    assert (told.claims, told.suspects) == ((), True)
    finish(store, claim_one(store, alone=True))
    assert state(store, "a") is State.DONE


def test_an_idle_worker_that_was_given_up_gets_nothing(store):
    worker = new_worker(store)
    assert claim_ids(store, worker=worker) == []
    store.retire(worker)
    put(store, "a")
    assert claim_ids(store, worker=worker) == []


def test_counts_are_folded_and_stay_the_same(store):
    for i in range(130):
        put(store, f"job-{i}")
        finish(store, claim_one(store))
    before = store.backlog()
    assert min(how_many_rows(store)) >= 130
    store.upkeep(by_policy)
    assert max(how_many_rows(store)) < 10
    after = store.backlog()
    assert (before.accepted, before.done) == (after.accepted, after.done) == (130, 130)


def test_rounds_side_by_side_fold_each_row_once(store):
    put_many(store, 10)
    for i in range(300):
        put(store, f"more-{i}")
    together(*[lambda: store.upkeep(by_policy)] * 4)
    assert store.backlog().accepted == 310


def how_many_rows(store):
    """Of the counts, and of the health of tasks."""
    return store._database.once("SELECT (SELECT count(*) FROM treppe.count), (SELECT count(*) FROM treppe.health)")[0]


def test_an_idle_store_is_looked_after_rarely_and_exactly_when_the_next_lease_ends(store):
    worker = new_worker(store)
    store.renew(worker, 300.0)
    make_idle(store)
    store.upkeep(by_policy)
    assert store.upkeep(by_policy).look_in == IDLE
    store.renew(worker, 2.0)
    assert 1.0 < store.upkeep(by_policy).look_in <= 2.0


def test_what_expires_or_is_to_be_confirmed_soon_is_looked_after_then(store):
    put(store, "a", expires=3.0)
    assert 2.0 < store.upkeep(by_policy).look_in <= 3.0
    put(store, "b")
    store.settle([handed_over(claim_one(store), confirm_within=1.5)])
    assert 0.5 < store.upkeep(by_policy).look_in <= 1.5


def test_who_is_lost_and_may_not_be_given_up_yet_is_looked_at_again_soon(store):
    store.retire(new_worker(store))
    assert store.upkeep(None).look_in == BUSY
