"""Puts beside other people's transactions: nobody deadlocks, nobody holds up a hundred others, everybody is told."""

import threading
import time

import psycopg
import pytest

from treppe.errors import InvalidJob, StoreBusy
from treppe.intake import Intake
from treppe.job import NewEvent, NewJob
from treppe.store.postgres import PostgresStore
from treppe.store.postgres.listening import MOST_A_SECOND, Herald
from treppe.store.postgres.putting import carry_out


@pytest.fixture
def theirs(treppe_url):
    """Somebody else's transaction."""
    with psycopg.connect(treppe_url, cursor_factory=psycopg.RawCursor) as connection:
        yield connection


def jobs(*ids):
    return [NewJob(id, "t", "q", b"{}") for id in ids]


def enqueue(store, theirs, *ids):
    return carry_out(store.plan(jobs(*ids)), lambda sql, params: theirs.execute(sql, params).fetchall())


def test_a_batch_with_an_id_of_an_open_transaction_gives_up_soon_and_stores_nothing(store, theirs):
    enqueue(store, theirs, "b")
    began = time.monotonic()
    with pytest.raises(StoreBusy, match="another transaction is in the way"):
        store.put(jobs("a", "b", "c"))
    assert 0.15 < time.monotonic() - began < 5
    assert store.get("a") is None
    theirs.commit()
    assert [one.duplicate for one in store.put(jobs("a", "b", "c")).jobs] == [False, True, False]


def test_an_event_of_an_open_transaction_is_not_waited_for_either(store, theirs):
    event = NewEvent("shop", "e", b"1")
    theirs.execute(
        "INSERT INTO treppe.event (source, id, topic, at, content_type, headers, body) "
        "VALUES ('shop', 'e', '', 0, '', '[]', '1')"
    )
    with pytest.raises(StoreBusy):
        store.put([NewJob("a", "t", "q", event=("shop", "e"))], [event])
    theirs.rollback()
    assert not store.put([NewJob("a", "t", "q", event=("shop", "e"))], [event]).events[0].duplicate


def test_the_intake_waits_a_while_for_a_transaction_that_ends(store, theirs):
    enqueue(store, theirs, "a")
    timer = threading.Timer(0.5, theirs.commit)
    timer.start()
    (placed,) = Intake(store).put(jobs("a")).jobs
    timer.join()
    assert placed.duplicate


def test_crossed_ids_never_fail_the_transaction_of_somebody_else(store, theirs):
    theirs.execute("SET deadlock_timeout = '1s'")
    enqueue(store, theirs, "b")
    told = []

    def put():
        try:
            store.put(jobs("a", "b"))
        except StoreBusy as error:
            told.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    end = time.monotonic() + 10
    with psycopg.connect(theirs.info.dsn, autocommit=True) as look:
        while not look.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall() and not told:
            assert time.monotonic() < end
    enqueue(store, theirs, "a")  # waits for our put, which waits for this transaction
    thread.join(10)
    theirs.commit()
    assert len(told) == 1
    assert {store.get(id).id for id in "ab"} == {"a", "b"}


def test_an_id_whose_transaction_is_rolled_back_meanwhile_is_placed(store, theirs):
    enqueue(store, theirs, "a")
    timer = threading.Timer(0.05, theirs.rollback)
    timer.start()
    (placed,) = store.put(jobs("a")).jobs
    timer.join()
    assert not placed.duplicate


def test_no_time_limit_is_left_in_the_callers_transaction(store, theirs):
    before = theirs.execute("SHOW lock_timeout").fetchone()
    enqueue(store, theirs, "a")
    assert theirs.execute("SHOW lock_timeout").fetchone() == before
    theirs.rollback()
    store.put(jobs("a"))
    assert store._database.once("SHOW lock_timeout") == [("10s",)]


def test_the_clock_is_the_databases_and_not_the_beginning_of_the_transaction(store, theirs):
    theirs.execute("SELECT pg_sleep(0.2)")
    (began,) = theirs.execute("SELECT extract(epoch FROM now())::float8").fetchone()
    enqueue(store, theirs, "a")
    theirs.commit()
    assert store.get("a").created_at >= began + 0.2


def test_duplicates_are_compared_by_digest_however_large(store):
    large = NewJob("a", "t", "q", b"x" * 20_000_000)
    store.put([large])
    (again,) = store.put([large]).jobs
    assert (again.duplicate, again.conflict) == (True, "")
    (other,) = store.put([NewJob("a", "t", "q", b"y" * 20_000_000)]).jobs
    assert other.conflict == "content"


def test_ten_thousand_jobs_are_one_put(store):
    placed = store.put(jobs(*[f"job-{i}" for i in range(10_000)])).jobs
    assert [one.seq for one in placed] == sorted(one.seq for one in placed)
    assert store.backlog().accepted == 10_000


def test_a_put_writes_no_row_that_another_put_waits_for(store):
    """One row for the figure "accepted" would make every transaction wait for the one before."""
    connection = store._database.connect()
    with connection:
        connection.execute("BEGIN")
        carry_out(store.plan(jobs("a")), lambda sql, params: connection.cursor().execute(sql, params).fetchall())
        store.put(jobs("b"))  # while that one is open
        connection.execute("COMMIT")
    assert store.backlog().accepted == 2


def test_a_job_of_an_event_cannot_be_planned(store):
    with pytest.raises(InvalidJob, match="put together with it"):
        list(store.plan([NewJob("a", "t", "q", event=("shop", "e"))]))


def test_the_names_are_compared_byte_by_byte_whatever_the_database_sorts_by(postgres15):
    name = "sorted_otherwise"
    postgres15.execute(f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de' LOCALE 'C'")
    store = PostgresStore(postgres15.socket_url(name))
    try:
        store.migrate()
        ids = ["a", "A", "ä", "a\u0308", "ß", "ss", "Z", "z"]
        assert not any(one.duplicate for one in store.put(jobs(*ids)).jobs)
        for value in ("flow:a", "Flow:a", "flow", "flow:ä"):
            store.journal.swap(value, None, b"")
        assert set(store.journal.scan("flow:")) == {"flow:a", "flow:ä"}
    finally:
        store.close()
        postgres15.drop(name)


def test_a_herald_says_the_queue_and_little_else():
    herald = Herald()
    assert herald.word(jobs("a")) == "q"
    assert herald.word(jobs("a")) is None  # milliseconds later
    assert herald.word([NewJob("a", "t", "x"), NewJob("b", "t", "y")]) == "*"
    assert herald.word([]) is None


def test_a_herald_falls_silent_when_there_is_much_to_say():
    herald = Herald()
    words = [herald.word([NewJob("a", "t", f"q{i}")]) for i in range(2 * MOST_A_SECOND)]
    assert words[0] is not None
    assert words[-1] is None
