"""Waking up: what is said is heard, what is not heard is found by asking, and a dead ear is noticed."""

import threading
import time

import pytest

from treppe.job import NewJob
from treppe.policy.pace import Pacer
from treppe.store.bell import Bell
from treppe.store.postgres import PostgresStore, listening
from treppe.store.protocol import Wanted

PROMPT = 5.0


@pytest.fixture
def other(treppe_url):
    """The store of another process."""
    store = PostgresStore(treppe_url)
    yield store
    store.close()


@pytest.fixture
def bell():
    bell = Bell()
    yield bell
    bell.close()


def quiet(store, bell, monkeypatch):
    """Listening, with nothing heard, and no reason to ask soon."""
    store.wait(0.0, bell)
    listener = store._waiters.listener
    assert listener.fd is not None
    monkeypatch.setattr(listener, "_stirred", time.monotonic() - 1000)
    store.claim(Wanted(1, 1, 1, frozenset("t")), Pacer({}))
    return listener


def seconds_of(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began


def test_a_put_of_another_process_wakes_who_waits(store, other, bell, monkeypatch):
    quiet(store, bell, monkeypatch)
    timer = threading.Timer(0.2, other.put, [[NewJob("a", "t", "q")]])
    timer.start()
    assert 0.1 < seconds_of(lambda: store.wait(30.0, bell)) < PROMPT
    timer.join()


def test_every_one_who_waits_in_a_process_is_woken(store, other, bell, monkeypatch):
    quiet(store, bell, monkeypatch)
    waits = [threading.Thread(target=store.wait, args=(30.0, Bell())) for _ in range(5)]
    for thread in waits:
        thread.start()
    other.put([NewJob("a", "t", "q")])
    for thread in waits:
        thread.join(PROMPT)
    assert not any(thread.is_alive() for thread in waits)


def test_an_act_of_another_process_wakes_too(store, other, bell, monkeypatch):
    from treppe.job import Event
    from treppe.store.protocol import Seen

    store.put([NewJob("a", "t", "q")])
    quiet(store, bell, monkeypatch)
    bell.clear()
    timer = threading.Timer(0.1, other.change, [[Seen("a", 0)], Event.CANCEL, "me"])
    timer.start()
    assert seconds_of(lambda: store.wait(30.0, bell)) < PROMPT
    timer.join()


def test_after_something_happened_it_asks_soon_and_then_ever_less(store, bell, monkeypatch):
    listener = quiet(store, bell, monkeypatch)
    assert listener.patience() > 900
    listener.stir()
    assert listener.patience() == listening.SOON
    assert seconds_of(lambda: store.wait(30.0, bell)) < PROMPT


def test_a_session_that_the_server_ended_is_noticed_at_once_and_opened_anew(
    store, other, bell, monkeypatch, postgres18, caplog
):
    listener = quiet(store, bell, monkeypatch)
    pid = listener._ear.info.backend_pid
    monkeypatch.setattr(listening, "AGAIN_AFTER", 0.0)
    timer = threading.Timer(0.1, postgres18.execute, [f"SELECT pg_terminate_backend({pid}, 5000)"])
    timer.start()
    assert seconds_of(lambda: store.wait(30.0, bell)) < PROMPT
    timer.join()
    assert "the connection that listens for work was lost" in caplog.text
    listener._next_try = 0.0
    quiet(store, bell, monkeypatch)
    timer = threading.Timer(0.1, other.put, [[NewJob("a", "t", "q")]])
    timer.start()
    assert seconds_of(lambda: store.wait(30.0, bell)) < PROMPT
    timer.join()


def test_an_ear_hears_itself(store, bell, monkeypatch):
    listener = quiet(store, bell, monkeypatch)
    listener._next_test = 0.0
    store.wait(0.2, bell)
    assert listener._next_test > time.monotonic()
    end = time.monotonic() + PROMPT
    while listener._answer_by is not None:
        assert time.monotonic() < end
        assert not listener.hear()  # what we say to ourselves is no work
        time.sleep(0.01)


def test_an_ear_that_hears_nothing_of_what_we_say_is_thrown_away(store, bell, monkeypatch):
    """As one whose network is gone without a word (procrastinate#1425, oban#1301)."""
    listener = quiet(store, bell, monkeypatch)
    listener._ear.execute("UNLISTEN *")
    monkeypatch.setattr(listening, "ANSWERS_WITHIN", 0.0)
    listener._next_test = 0.0
    listener.test()
    assert listener.hear()
    assert listener.fd is None


def test_behind_a_pooler_nobody_listens_and_asking_is_left(postgres18, pgbouncer, treppe_url, bell):
    name = treppe_url.partition("?")[0].rpartition("/")[2]
    store = PostgresStore(pgbouncer.url(name))
    for _ in range(3):
        store.wait(0.01, bell)
    assert store._waiters.listener.fd is None
    assert store._waiters.listener._deaf
    assert postgres18.execute(
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND query LIKE 'LISTEN%'"
    ) == [(0,)]
    store.close()


def test_a_server_that_is_away_keeps_nobody_from_waiting(bell, caplog):
    store = PostgresStore("postgresql://postgres@127.0.0.1:1/shop")
    store._looked = store._rung
    assert seconds_of(lambda: store.wait(0.05, bell)) < PROMPT
    assert "cannot listen for new work, asking goes on" in caplog.text
    store.close()
