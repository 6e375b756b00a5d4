"""Enqueue in the caller's own transaction, through everything from the task to the statement."""

import asyncio
import itertools
import sqlite3
import sys
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiosqlite
import pytest

from treppe import Conflict, InvalidJob, StoreError, StoreUnavailable, Treppe, Unsupported
from treppe.app import open_store
from treppe.testing.kit import drain

AUTOCOMMIT = "this connection is in autocommit: the job would commit alone, whatever becomes of your order"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One file for the orders of a shop and for its jobs."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
    return tmp_path / "shop.db"


@pytest.fixture
def app(file: Path):
    app = Treppe(open_store(f"sqlite:///{file}", durable=False))
    app.task(name="mail", queue="mail", key="to")(lambda to, order=0: order)
    yield app
    app.close()


@pytest.fixture
def mail(app):
    return app.tasks["mail"]


@pytest.fixture
def connection(file: Path):
    with closing(sqlite3.connect(file)) as connection:
        yield connection


def jobs(app) -> int:
    return app.store.backlog().accepted


def orders(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT count(*) FROM orders").fetchone()[0]


def an_order(connection) -> None:
    connection.execute("INSERT INTO orders (name) VALUES ('Ada')")


def test_a_commit_makes_order_and_job_visible_together(app, mail, file, connection):
    an_order(connection)
    placed = mail.using(id="mail:1", within=connection).enqueue("ada", order=1)
    assert (jobs(app), orders(file)) == (0, 0)
    connection.commit()
    assert (jobs(app), orders(file)) == (1, 1)
    assert (placed.duplicate, app.job("mail:1").key) == (False, "ada")
    drain(app)
    assert app.result("mail:1") == 1


def test_a_job_that_comes_first_begins_the_transaction(app, mail, file, connection):
    """As the driver would by itself: with a commit of the caller's, never with one of ours."""
    mail.using(within=connection).enqueue("ada")
    assert connection.in_transaction
    assert jobs(app) == 0
    an_order(connection)
    connection.rollback()
    assert (jobs(app), orders(file)) == (0, 0)


def test_the_very_first_job_may_be_one_of_a_transaction(tmp_path, file, connection):
    """The tables are made in it too, while the caller holds the only lock there is."""
    app = Treppe(f"sqlite:///{file}")
    first = app.task(name="first")(lambda: None)
    connection.execute("BEGIN IMMEDIATE")
    an_order(connection)
    first.using(id="gone", within=connection).enqueue()
    connection.rollback()
    connection.execute("BEGIN IMMEDIATE")
    first.using(id="kept", within=connection).enqueue()
    connection.commit()
    assert (jobs(app), app.job("kept").task) == (1, "first")
    assert drain(app).done == 1
    app.close()


def test_a_rollback_leaves_nothing(app, mail, file, connection):
    def story():
        with connection:
            an_order(connection)
            mail.using(within=connection).enqueue("ada")
            raise KeyError("an accident")

    with pytest.raises(KeyError):
        story()
    assert (jobs(app), orders(file)) == (0, 0)


def test_a_savepoint_rolled_back_leaves_nothing_of_it(app, mail, connection):
    mail.using(id="kept", within=connection).enqueue("ada")
    connection.execute("SAVEPOINT treppe")  # a name like ours is no trouble
    mail.using(id="dropped", within=connection).enqueue("ada")
    connection.execute("ROLLBACK TO treppe")
    mail.using(id="kept-2", within=connection).enqueue("ada")
    connection.commit()
    assert jobs(app) == 2
    assert {app.job(id).id for id in ("kept", "kept-2")} == {"kept", "kept-2"}
    assert app.store.get("dropped") is None


def test_a_closed_connection_leaves_nothing(app, mail, file):
    connection = sqlite3.connect(file)
    an_order(connection)
    mail.using(within=connection).enqueue("ada")
    connection.close()
    assert (jobs(app), orders(file)) == (0, 0)
    with pytest.raises(StoreError, match="your connection says: Cannot operate on a closed database"):
        mail.using(within=connection).enqueue("ada")


def test_a_worker_of_another_connection_finds_it_soon(app, mail, connection):
    mail.using(id="mail:1", within=connection).enqueue("ada")
    connection.commit()
    assert drain(app).done == 1


def test_the_same_id_again_leaves_the_transaction_usable(app, mail, file, connection):
    first = mail.using(id="mail:1").enqueue("ada")
    an_order(connection)
    again = mail.using(id="mail:1", within=connection).enqueue("ada")
    an_order(connection)
    mail.using(id="mail:2", within=connection).enqueue("ada")
    connection.commit()
    assert (again.duplicate, again.seq) == (True, first.seq)
    assert (jobs(app), orders(file)) == (2, 2)


def test_a_conflict_is_raised_and_leaves_the_transaction_usable(app, mail, file, connection):
    mail.using(id="mail:1").enqueue("ada")
    an_order(connection)
    with pytest.raises(Conflict, match='the id "mail:1" is taken by a job with another content'):
        mail.using(id="mail:1", within=connection).enqueue("bob")
    an_order(connection)
    mail.using(id="mail:2", within=connection).enqueue("bob")
    connection.commit()
    assert (jobs(app), orders(file)) == (2, 2)
    assert app.job("mail:1").key == "ada"


def test_a_job_that_cannot_be_leaves_the_transaction_usable(app, mail, file, connection):
    an_order(connection)
    for call in (mail.using(queue="No Queue", within=connection), mail.using(id="", within=connection)):
        with pytest.raises(InvalidJob):
            call.enqueue("ada")
    connection.commit()
    assert (jobs(app), orders(file)) == (0, 1)


def test_many_jobs_go_in_one_transaction(app, mail, connection):
    placed = app.enqueue_many([mail.using(id=f"mail:{n}").prepare("ada", n) for n in range(100)], within=connection)
    assert [one.id for one in placed] == [f"mail:{n}" for n in range(100)]
    assert jobs(app) == 0
    connection.commit()
    assert jobs(app) == 100


def test_of_many_jobs_a_conflict_is_told_and_the_caller_decides(app, mail, connection):
    mail.using(id="mail:7").enqueue("ada", 0)
    with pytest.raises(Conflict):
        app.enqueue_many([mail.using(id=f"mail:{n}").prepare("ada", n) for n in range(10)], within=connection)
    connection.rollback()
    assert jobs(app) == 1


class Broken(sqlite3.Connection):
    """Its statements fail from the n-th on, until it is mended."""

    fails_at = 0

    def cursor(self, *args):
        connection = self

        class Cursor(sqlite3.Cursor):
            def execute(self, sql, *args):
                connection.fails_at -= 1
                if connection.fails_at == 0:
                    raise sqlite3.OperationalError("database or disk is full")
                return super().execute(sql, *args)

        return super().cursor(Cursor)


def raised_by(call) -> str:
    try:
        call()
    except StoreUnavailable as error:
        return str(error)
    return ""


def test_whatever_statement_fails_the_job_is_there_whole_or_not_at_all(app, mail, file):
    """Half a job would be one that nobody ever claims."""
    for n in itertools.count(1):
        with closing(sqlite3.connect(file, factory=Broken)) as connection:
            an_order(connection)
            connection.fails_at = n
            failed = raised_by(lambda c=connection: mail.using(id="mail:1", within=c).enqueue("ada"))
            connection.fails_at = 0
            an_order(connection)
            connection.commit()
        assert orders(file) == 2 * n
        assert jobs(app) == drain(app).done == (0 if failed else 1)
        if not failed:
            break
        assert failed == "your connection says: database or disk is full"
    assert n > 6


def test_a_transaction_that_sqlite_rolled_back_by_itself_is_told(app, mail, monkeypatch, connection):
    """On some errors nothing is left to roll back to."""
    an_order(connection)

    def plan():
        yield "ROLLBACK", ()
        yield "INSERT INTO nowhere VALUES (1)", ()

    monkeypatch.setattr(app.store, "plan", lambda jobs: plan())
    with pytest.raises(StoreUnavailable, match="no such table: nowhere"):
        mail.using(within=connection).enqueue("ada")
    assert not connection.in_transaction


def test_a_locked_file_is_told(app, mail, file):
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        impatient = sqlite3.connect(file, timeout=0.05)
        with closing(impatient), pytest.raises(StoreUnavailable, match="your connection says: database is locked"):
            mail.using(within=impatient).enqueue("ada")
        other.execute("ROLLBACK")


def test_a_connection_of_another_thread_is_told(app, mail, connection):
    async def elsewhere():
        await asyncio.to_thread(mail.using(within=connection).enqueue, "ada")

    with pytest.raises(StoreError, match="SQLite objects created in a thread can only be used in that same thread"):
        asyncio.run(elsewhere())


# What the connection is like


def as_dict(cursor, row):
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


@pytest.mark.parametrize("factory", [sqlite3.Row, as_dict, lambda cursor, row: list(row), lambda cursor, row: None])
def test_rows_may_be_shaped_in_any_way(app, mail, connection, factory):
    connection.row_factory = factory
    first = mail.using(id="mail:1", within=connection).enqueue("ada")
    again = mail.using(id="mail:1", within=connection).enqueue("ada")
    connection.commit()
    assert (first.duplicate, again.duplicate, again.seq) == (False, True, first.seq)
    assert connection.row_factory is factory


@pytest.mark.parametrize("factory", [bytes, bytearray, lambda text: text.decode("latin-1")])
def test_texts_may_be_shaped_in_any_way(app, mail, connection, factory):
    connection.text_factory = factory
    first = mail.using(id="mail:ü", within=connection).enqueue("ada")
    again = mail.using(id="mail:ü", within=connection).enqueue("ada")
    connection.commit()
    assert again.seq == first.seq
    assert connection.text_factory is factory


def test_foreign_keys_may_be_checked(app, mail, connection):
    connection.execute("PRAGMA foreign_keys = ON")
    mail.using(id="mail:1", within=connection).enqueue("ada")
    connection.commit()
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert jobs(app) == 1


@pytest.mark.parametrize("level", ["DEFERRED", "IMMEDIATE", "EXCLUSIVE", ""])
def test_the_driver_may_begin_its_transactions_in_any_way(app, mail, file, level):
    with closing(sqlite3.connect(file, isolation_level=level)) as connection:
        mail.using(within=connection).enqueue("ada")
        assert jobs(app) == 0
        connection.commit()
    assert jobs(app) == 1


class Own(sqlite3.Connection):
    """A connection of somebody's own making."""


def test_a_connection_may_be_of_a_class_of_your_own(app, mail, file):
    with closing(sqlite3.connect(file, factory=Own, detect_types=sqlite3.PARSE_DECLTYPES)) as connection:
        mail.using(within=connection).enqueue("ada")
        connection.commit()
    assert jobs(app) == 1


def test_autocommit_is_refused_unless_a_transaction_was_begun(app, mail, file):
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        with pytest.raises(Unsupported, match=AUTOCOMMIT):
            mail.using(within=connection).enqueue("ada")
        assert jobs(app) == 0
        connection.execute("BEGIN IMMEDIATE")
        mail.using(within=connection).enqueue("ada")
        connection.execute("COMMIT")
    assert jobs(app) == 1


class Modern(sqlite3.Connection):
    """Says what Python 3.12 and newer say."""

    autocommit = True


def test_the_autocommit_of_newer_pythons_is_refused(app, mail, file):
    """There, isolation_level says nothing about it."""
    with closing(sqlite3.connect(file, factory=Modern)) as connection:
        assert connection.isolation_level is not None
        with pytest.raises(Unsupported, match=AUTOCOMMIT):
            mail.using(within=connection).enqueue("ada")


if sys.version_info >= (3, 12):

    @pytest.mark.parametrize("autocommit", [False, True, -1])
    def test_the_real_autocommit_of_newer_pythons(app, mail, file, autocommit):
        with closing(sqlite3.connect(file, autocommit=autocommit)) as connection:
            if autocommit is True:
                with pytest.raises(Unsupported, match=AUTOCOMMIT):
                    mail.using(within=connection).enqueue("ada")
                connection.execute("BEGIN")
            mail.using(within=connection).enqueue("ada")
            assert jobs(app) == 0
            connection.execute("COMMIT") if autocommit is True else connection.commit()
        assert jobs(app) == 1

    @pytest.mark.parametrize("autocommit", [False, True, -1])
    def test_async_the_real_autocommit_of_newer_pythons(app, mail, file, autocommit):
        async def story():
            async with connected(file, autocommit=autocommit) as connection:
                if autocommit is True:
                    with pytest.raises(Unsupported, match=AUTOCOMMIT):
                        await mail.using(within=connection).aenqueue("ada")
                    await connection.execute("BEGIN")
                await mail.using(within=connection).aenqueue("ada")
                await (connection.execute("COMMIT") if autocommit is True else connection.commit())

        asyncio.run(story())
        assert jobs(app) == 1


def test_another_file_is_refused(app, mail, tmp_path, file):
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        with pytest.raises(StoreError) as refused:
            mail.using(within=connection).enqueue("ada")
        assert str(refused.value) == (
            f"your connection is to {other}, the jobs are in {file}. "
            "To commit together they must share one database: name yours as the store"
        )
        connection.execute(f"ATTACH '{file}' AS jobs")  # with a write-ahead log the two would not commit as one
        with pytest.raises(StoreError, match="they must share one database"):
            mail.using(within=connection).enqueue("ada")
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(StoreError, match="a database in memory"):
        mail.using(within=connection).enqueue("ada")
    assert jobs(app) == 0


def test_a_way_around_a_link_is_the_same_file(app, mail, tmp_path, file):
    (tmp_path / "link.db").symlink_to(file)
    with closing(sqlite3.connect(tmp_path / "link.db")) as connection:
        mail.using(within=connection).enqueue("ada")
        connection.rollback()


@pytest.mark.parametrize("thing", [object(), "connection", 7])
def test_what_is_no_connection_is_refused(app, mail, thing):
    sentence = f"within= cannot use a builtins.{type(thing).__name__}. Hand over a connection of sqlite3,"
    with pytest.raises(Unsupported, match=sentence):
        mail.using(within=thing).enqueue("ada")
    with pytest.raises(Unsupported, match=sentence):
        asyncio.run(mail.using(within=thing).aenqueue("ada"))


def test_a_store_that_cannot_is_refused(app, mail, connection, monkeypatch):
    import msgspec

    monkeypatch.setattr(app.store, "can", msgspec.structs.replace(app.store.can, within=False))
    with pytest.raises(Unsupported, match=r"this store cannot enqueue inside your transaction. Leave out within="):
        mail.using(within=connection).enqueue("ada")


# aiosqlite


@asynccontextmanager
async def connected(file: Path, **settings):
    connection = await aiosqlite.connect(file, **settings)
    try:
        yield connection
    finally:
        await connection.close()


def test_async_a_commit_makes_order_and_job_visible_together(app, mail, file):
    async def story():
        async with connected(file) as connection:
            await connection.execute("INSERT INTO orders (name) VALUES ('Ada')")
            await mail.using(id="mail:1", within=connection).aenqueue("ada", order=1)
            assert (jobs(app), orders(file)) == (0, 0)
            await connection.commit()

    asyncio.run(story())
    assert (jobs(app), orders(file)) == (1, 1)


def test_async_rollback_savepoint_and_close_leave_nothing(app, mail, file):
    async def story():
        async with connected(file) as connection:
            await mail.using(within=connection).aenqueue("ada")
            await connection.rollback()
            await mail.using(id="kept", within=connection).aenqueue("ada")
            await connection.execute("SAVEPOINT one")
            await mail.using(within=connection).aenqueue("ada")
            await connection.execute("ROLLBACK TO one")
            await connection.commit()
            await mail.using(within=connection).aenqueue("ada")
        with pytest.raises(StoreError, match="your connection says: no active connection"):
            await mail.using(within=connection).aenqueue("ada")

    asyncio.run(story())
    assert jobs(app) == 1
    assert app.job("kept").key == "ada"


def test_async_duplicates_and_conflicts_leave_the_transaction_usable(app, mail, file):
    async def story():
        async with connected(file) as connection:
            connection.row_factory = aiosqlite.Row
            connection.text_factory = bytes
            await mail.using(id="mail:1", within=connection).aenqueue("ada")
            assert (await mail.using(id="mail:1", within=connection).aenqueue("ada")).duplicate
            with pytest.raises(Conflict):
                await mail.using(id="mail:1", within=connection).aenqueue("bob")
            placed = await app.aenqueue_many([mail.prepare("a"), mail.prepare("b")], within=connection)
            assert len(placed) == 2
            await connection.commit()
            assert (connection.row_factory, connection.text_factory) == (aiosqlite.Row, bytes)

    asyncio.run(story())
    assert jobs(app) == 3


def test_async_autocommit_and_another_file_are_refused(app, mail, file, tmp_path):
    async def story():
        async with connected(file, isolation_level=None) as connection:
            with pytest.raises(Unsupported, match=AUTOCOMMIT):
                await mail.using(within=connection).aenqueue("ada")
            await connection.execute("BEGIN")
            await mail.using(within=connection).aenqueue("ada")
            await connection.execute("COMMIT")
        async with connected(file, factory=Modern) as connection:
            with pytest.raises(Unsupported, match=AUTOCOMMIT):
                await mail.using(within=connection).aenqueue("ada")
        async with connected(tmp_path / "other.db") as connection:
            with pytest.raises(StoreError, match="they must share one database"):
                await mail.using(within=connection).aenqueue("ada")

    asyncio.run(story())
    assert jobs(app) == 1


def test_async_a_statement_that_fails_leaves_nothing_of_the_job(app, mail, file):
    async def story(n):
        async with connected(file, factory=Broken) as connection:
            await connection.execute("INSERT INTO orders (name) VALUES ('Ada')")
            connection._conn.fails_at = n
            with pytest.raises(StoreUnavailable, match="disk is full"):
                await mail.using(within=connection).aenqueue("ada")
            await connection.commit()

    for n in range(2, 6):
        asyncio.run(story(n))
    assert (jobs(app), orders(file)) == (0, 4)


@pytest.mark.parametrize("n", range(1, 12))
def test_async_cancelled_in_the_middle_the_job_is_there_whole_or_not_at_all(app, mail, file, n):
    async def story():
        async with connected(file) as connection:
            await connection.execute("INSERT INTO orders (name) VALUES ('Ada')")
            calling = asyncio.create_task(mail.using(id="mail:1", within=connection).aenqueue("ada"))
            for _ in range(n):
                await connection.execute("SELECT 1")  # as many turns of the connection's thread
            calling.cancel()
            cancelled = (await asyncio.gather(calling, return_exceptions=True))[0]
            await connection.commit()
            return isinstance(cancelled, asyncio.CancelledError)

    cancelled = asyncio.run(story())
    assert orders(file) == 1
    assert drain(app).done == jobs(app) == (0 if cancelled else 1)


def test_async_code_is_told_of_a_plain_connection(app, mail, connection):
    with pytest.raises(Unsupported, match=r"a sqlite3\.Connection is for plain code, .* call enqueue\(…\) where you"):
        asyncio.run(mail.using(id="mail:1", within=connection).aenqueue("ada"))
    assert not connection.in_transaction


def test_plain_code_cannot_use_an_async_connection(app, mail, file):
    async def story():
        async with connected(file) as connection:
            with pytest.raises(Unsupported, match=r"a aiosqlite.*Connection is for async code: await aenqueue"):
                mail.using(within=connection).enqueue("ada")

    asyncio.run(story())
