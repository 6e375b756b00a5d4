import asyncio
import gc
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from treppe import ConfigError, NotFound, State, StoreError, Treppe
from treppe.app import open_store, pacer_for
from treppe.config import Rate
from treppe.testing.kit import drain


@pytest.fixture
def shop(tmp_path):
    """An app on a real file, as durable as by default."""
    app = Treppe(f"sqlite:///{tmp_path}/shop.db")
    app.task(name="note", queue="notes")(lambda n=0: n)
    yield app
    app.close()


def test_the_store_is_opened_at_first_use(shop, tmp_path):
    assert not (tmp_path / "shop.db").exists()
    shop.tasks["note"].enqueue(1)
    assert (tmp_path / "shop.db").exists()
    assert shop.store.settings()["synchronous"] == 2  # FULL


def test_a_closed_app_opens_again_when_it_is_used(shop):
    placed = shop.tasks["note"].enqueue(1)
    shop.close()
    shop.close()
    assert shop.job(placed.id).state is State.WAITING


def test_an_app_that_was_never_used_can_be_closed(tmp_path):
    Treppe(f"sqlite:///{tmp_path}/shop.db").close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", 'names no store. Write "sqlite:///treppe.db"'),
        ("sqlite://shop.db", "names no store"),
        ("sqlite:///:memory:", "names no store"),
        ("redis://me:s3cret@db/0", "not available in this version: Redis as the store"),
        ("mysql://me:s3cret@db/shop", "names no store"),
    ],
)
def test_a_store_that_cannot_be_is_told_when_the_app_is_made(url, sentence):
    with pytest.raises(ConfigError) as refused:
        Treppe(url)
    assert sentence in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_store_in_a_folder_that_is_not_there_is_told(tmp_path):
    app = Treppe(f"sqlite:///{tmp_path}/nowhere/shop.db")
    app.task(name="note")(lambda: None)
    with pytest.raises(StoreError, match=r'nowhere" does not exist. Create it, or name another file'):
        app.tasks["note"].enqueue()


def test_a_store_may_be_handed_in(tmp_path):
    with closing(open_store(f"sqlite:///{tmp_path}/shop.db", durable=False)) as store:
        app = Treppe(store)
        assert app.store is store


def test_a_store_is_opened_as_it_is_where_that_is_wanted(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/shop.db", migrate=False)
    with closing(store), pytest.raises(StoreError, match="Run: treppe migrate"):
        store.backlog()


def test_a_job_that_is_not_there_is_told(shop):
    for ask in (shop.job, shop.result):
        with pytest.raises(NotFound, match='there is no job "x"'):
            ask("x")


def test_a_result_is_read_by_the_id(shop):
    placed = shop.tasks["note"].using(id="n").enqueue([1, {"a": None}])
    assert shop.result("n") is None
    drain(shop)
    assert shop.result(placed.id) == [1, {"a": None}]


def test_many_threads_open_one_store(tmp_path):
    for _ in range(10):
        app = Treppe(f"sqlite:///{tmp_path}/shop.db")
        start, found = threading.Barrier(8), set()

        def look(app=app, start=start, found=found):
            start.wait()
            found.add(app.store)

        threads = [threading.Thread(target=look) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        app.close()
        assert len(found) == 1


def test_threads_that_enqueue_at_once_share_commits(shop):
    """Each caller gets its answer after a commit, but not each a commit of its own."""
    note, commits = shop.tasks["note"], []
    note.enqueue(-1)
    connection = shop.store._database._here().main
    connection.set_trace_callback(lambda sql: commits.append(sql) if sql.startswith("COMMIT") else None)
    start = threading.Barrier(8)

    def enqueue(first):
        start.wait()
        for n in range(first, first + 25):
            assert shop.job(note.using(id=f"n{n}").enqueue(n).id).state is State.WAITING

    threads = [threading.Thread(target=enqueue, args=(25 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    connection.set_trace_callback(None)
    assert shop.store.backlog().accepted == 201
    assert len(commits) < 200


def test_coroutines_that_enqueue_at_once_are_all_stored(shop):
    async def all_at_once():
        return await asyncio.gather(*[shop.tasks["note"].using(id=f"n{n}").aenqueue(n) for n in range(100)])

    assert len({placed.seq for placed in asyncio.run(all_at_once())}) == 100


FORKING = """
import os, sys
from treppe import Treppe

app = Treppe(f"sqlite:///{sys.argv[1]}")
note = app.task(name="note", queue="notes")(lambda n=0: n)
note.using(id="before").enqueue()
child = os.fork()
name = "parent" if child else "child"
for n in range(50):
    note.using(id=f"{name}-{n}").enqueue(n)
    note.enqueue(n)  # with an id of its own making
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
app.close()
"""


def test_after_a_fork_both_processes_enqueue(shop, tmp_path):
    file = tmp_path / "shop.db"
    subprocess.run([sys.executable, "-c", FORKING, str(file)], check=True, timeout=60)
    assert shop.store.backlog().accepted == 201
    assert drain(shop).done == 201
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_queue_has_its_pace(shop):
    shop.queue("lexware", rate="2/s", concurrent=1)
    shop.queue("shop:*", concurrent=4)
    pacer = pacer_for(shop.queues)
    assert (pacer.limits("lexware").rate, pacer.limits("lexware").concurrent) == (Rate(2, 1.0), 1)
    assert pacer.limits("shop:acme").concurrent == 4
    assert not pacer.limited("notes")


@pytest.mark.parametrize(
    ("name", "pace", "sentence"),
    [
        ("Lexware", {}, "queue: 'Lexware' is not a good name. Use up to 128 small letters"),
        ("", {}, "queue: '' is not a good name"),
        ("*", {}, "queue: '*' is not a good name"),
        (7, {}, "queue: 7 is not a good name"),
        ("x", {"rate": "2 per second"}, 'queue "x": rate: "2 per second" is not a rate. Write calls per time'),
        ("x", {"rate": 2}, 'queue "x": rate: 2 is not a rate'),
        ("x", {"rate": "2/s", "burst": 3}, 'queue "x": burst: more than the rate allows'),
        ("x", {"burst": 2}, 'queue "x": burst: more than the rate allows'),
        ("x", {"burst": 0}, 'queue "x": burst: 0 is out of bounds'),
        ("x", {"concurrent": 0}, 'queue "x": concurrent: 0 is out of bounds. Choose one from 1 to 10000'),
        ("x", {"concurrent": "4"}, 'queue "x": concurrent: "4" is a text. Write it without quotes'),
    ],
)
def test_a_pace_that_cannot_be_is_told(name, pace, sentence):
    app = Treppe()
    with pytest.raises(ConfigError) as refused:
        app.queue(name, **pace)
    assert sentence in str(refused.value)
    assert app.queues == {}


def test_the_pace_of_a_queue_is_said_once():
    app = Treppe()
    app.queue("lexware", rate="2/s")
    with pytest.raises(ConfigError, match=r'queue "lexware": its pace is set already. Say all of it in one place'):
        app.queue("lexware", concurrent=1)


def test_a_closed_app_leaves_no_connection_behind(tmp_path):
    """Python 3.13 warns of each, and warnings are errors here."""
    app = Treppe(f"sqlite:///{tmp_path}/shop.db")
    app.task(name="note")(lambda: None)
    app.tasks["note"].enqueue()
    app.close()
    gc.collect()
    open_files = {str(fd.resolve()) for fd in Path("/proc/self/fd").iterdir()}
    assert str(Path(tmp_path / "shop.db").resolve()) not in open_files
