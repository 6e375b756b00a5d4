"""Whatever the caller holds, and however its transaction ends: order and job are there together, or neither is."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psycopg
import pytest

from tests.app.within.conftest import Shop
from tests.app.within.drivers import DRIVERS, Driver, play
from tests.servers import Server
from treppe import Conflict, InvalidJob, StoreError, StoreUnavailable, TreppeError, Unsupported
from treppe.app import open_store
from treppe.store.bell import Bell
from treppe.store.postgres import PostgresStore
from treppe.testing.kit import drain

AUTOCOMMIT = "this connection is in autocommit: the job would commit alone, whatever becomes of your order. "
HARD_TEXTS = [
    "100%",
    "%s %(p1)s %%",
    "$1",
    ":p1",
    "?",
    "it's",
    'a "name"',
    "back\\slash",
    "{a,b}",
    "NULL",
    "äöü €",
    "👍",
]


def test_a_commit_makes_order_and_job_visible_together_and_not_before(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            await driver.order()
            placed = await driver.enqueue(shop.app, "mail:1")
            assert shop.both() == (0, 0)
            await driver.commit()
        return placed

    placed = play(driver, story)
    assert shop.both() == (1, 1)
    assert not placed.duplicate
    assert shop.app.job("mail:1").seq == placed.seq
    assert drain(shop.app).done == 1


def test_a_rollback_leaves_nothing(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            await driver.order()
            await driver.enqueue(shop.app, "mail:1")
            await driver.rollback()

    play(driver, story)
    assert shop.both() == (0, 0)
    assert shop.app.store.get("mail:1") is None


def test_a_job_that_comes_first_begins_the_transaction(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            await driver.enqueue(shop.app, "mail:1")
            await driver.order()
            assert shop.jobs() == 0
            await driver.rollback()
            await driver.begin()
            await driver.enqueue(shop.app, "mail:2")
            await driver.order()
            await driver.commit()

    play(driver, story)
    assert shop.both() == (1, 1)
    assert shop.app.store.get("mail:1") is None


def test_a_savepoint_rolled_back_leaves_nothing_of_it(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            await driver.enqueue(shop.app, "kept")
            await driver.savepoint()
            await driver.enqueue(shop.app, "dropped")
            await driver.back_to_savepoint()
            await driver.order()
            await driver.enqueue(shop.app, "kept, too")
            await driver.commit()

    play(driver, story)
    assert shop.both() == (1, 2)
    assert shop.app.store.get("dropped") is None
    assert {shop.app.job(id).id for id in ("kept", "kept, too")} == {"kept", "kept, too"}


def test_a_lost_connection_leaves_nothing_and_is_told(shop: Shop, driver: Driver, request: pytest.FixtureRequest):
    async def story():
        async with driver.opened():
            await driver.order()
            await driver.enqueue(shop.app, "mail:1")
            await lose(driver, request)
            with pytest.raises(StoreError, match="your connection says: "):
                await driver.enqueue(shop.app, "mail:2")

    play(driver, story)
    assert shop.both() == (0, 0)


async def lose(driver: Driver, request: pytest.FixtureRequest) -> None:
    """The server ends the connection. A file has no server: there the driver's connection is closed behind our back."""
    if driver.dialect == "postgresql":
        pid = await driver.value("SELECT pg_backend_pid()")
        request.getfixturevalue("postgres18").execute(f"SELECT pg_terminate_backend({pid}, 5000)")
    elif (closing := (await driver.raw()).close()) is not None:
        await closing


def test_a_taken_id_is_answered_and_leaves_the_transaction_usable(shop: Shop, driver: Driver):
    first = shop.mail.using(id="mail:1").enqueue("ada")

    async def story():
        async with driver.opened():
            await driver.order()
            again = await driver.enqueue(shop.app, "mail:1")
            await driver.enqueue(shop.app, "mail:2")
            third = await driver.enqueue(shop.app, "mail:2")
            await driver.order()
            await driver.commit()
        return again, third

    again, third = play(driver, story)
    assert (again.duplicate, again.seq) == (True, first.seq)
    assert (third.duplicate, third.seq) == (True, shop.app.job("mail:2").seq)
    assert shop.both() == (2, 2)


def test_a_conflict_is_raised_and_leaves_the_transaction_usable(shop: Shop, driver: Driver):
    shop.mail.using(id="mail:1").enqueue("ada")

    async def story():
        async with driver.opened():
            await driver.order()
            with pytest.raises(Conflict, match='the id "mail:1" is taken by a job with another content'):
                await driver.enqueue(shop.app, "mail:1", "bob")
            await driver.order()
            await driver.enqueue(shop.app, "mail:2")
            await driver.commit()

    play(driver, story)
    assert shop.both() == (2, 2)
    assert shop.app.job("mail:1").key == "ada"


def test_a_job_that_cannot_be_leaves_the_transaction_usable(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            await driver.order()
            with pytest.raises(InvalidJob):
                await driver.enqueue(shop.app, "mail:1", queue="No Queue")
            await driver.order()
            await driver.commit()

    play(driver, story)
    assert shop.both() == (2, 0)


@pytest.mark.parametrize("size", [0, 1, 250])
def test_many_jobs_go_together(shop: Shop, driver: Driver, size: int):
    jobs = [shop.mail.using(id=f"mail:{n}", delay=n % 3, key=f"key {n}" if n % 2 else None).prepare("ada", n)
            for n in range(size)]  # fmt: skip

    async def story():
        async with driver.opened():
            await driver.order()
            placed = await driver.enqueue_many(shop.app, jobs)
            assert shop.both() == (0, 0)
            await driver.commit()
        return placed

    placed = play(driver, story)
    assert [(one.id, one.duplicate) for one in placed] == [(job.id, False) for job in jobs]
    assert shop.both() == (1, size)


def test_of_many_jobs_a_conflict_is_told_and_the_caller_decides(shop: Shop, driver: Driver):
    shop.mail.using(id="mail:7").enqueue("bob", 7)
    jobs = [shop.mail.using(id=f"mail:{n}").prepare("ada", n) for n in (9, 7, 8)]

    async def story():
        async with driver.opened():
            with pytest.raises(Conflict, match='"mail:7"'):
                await driver.enqueue_many(shop.app, jobs)
            await driver.rollback()
            await driver.begin()
            with pytest.raises(Conflict, match='"mail:7"'):
                await driver.enqueue_many(shop.app, jobs)
            await driver.commit()

    play(driver, story)
    assert shop.jobs() == 3
    assert shop.app.job("mail:7").key == "bob"


def test_the_job_is_the_same_as_one_that_was_stored_alone(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            for n, text in enumerate(HARD_TEXTS):
                await driver.enqueue(shop.app, f"theirs {n}: {text}", text, key=text, priority=n - 5)
            await driver.commit()

    play(driver, story)
    for n, text in enumerate(HARD_TEXTS):
        shop.mail.using(id=f"ours {n}", key=text, priority=n - 5).enqueue(text)
        ours, theirs = shop.app.job(f"ours {n}"), shop.app.job(f"theirs {n}: {text}")
        for name in set(ours.__struct_fields__) - {
            "seq",
            "id",
            "created_at",
            "due_at",
            "run_at",
            "behind",
            "expires_at",
        }:
            assert getattr(ours, name) == getattr(theirs, name), name
        assert abs(ours.created_at - theirs.created_at) < 60


def test_autocommit_is_refused(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened(autocommit=True):
            with pytest.raises(Unsupported) as refused:
                await driver.enqueue(shop.app, "mail:1")
        return str(refused.value)

    said = play(driver, story)
    assert said.startswith(AUTOCOMMIT)
    assert said.endswith(driver.autocommit_cure)
    assert shop.jobs() == 0


def test_a_driver_goes_with_its_own_kind_of_code(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            call = shop.mail.using(id="mail:1", within=driver.connection)
            with pytest.raises(Unsupported) as refused:
                call.enqueue("ada") if driver.is_async else await call.aenqueue("ada")
            await driver.order()
            await driver.commit()
        return str(refused.value)

    cure = "is for async code: await aenqueue" if driver.is_async else "is for plain code, the event loop would wait"
    assert cure in play(driver, story)
    assert shop.both() == (1, 0)


def test_another_database_is_refused_and_the_transaction_stays_usable(
    shop: Shop, driver: Driver, request: pytest.FixtureRequest, tmp_path
):
    if driver.dialect == "sqlite":
        elsewhere = open_store(f"sqlite:///{tmp_path / 'other.db'}")
        names = (str(shop.url), str(tmp_path / "other.db"))
    else:
        elsewhere = PostgresStore(request.getfixturevalue("other_url"))
        names = (shop.url.partition("?")[0].rpartition("/")[2], elsewhere.url.partition("?")[0].rpartition("/")[2])
    request.addfinalizer(elsewhere.close)

    async def story():
        async with driver.opened():
            await driver.order()
            with shop.app.instead(elsewhere):
                for _ in range(2):
                    with pytest.raises(StoreError, match="To commit together they must share one database") as refused:
                        await driver.enqueue(shop.app, "mail:1")
            await driver.order()
            await driver.commit()
        return str(refused.value)

    said = play(driver, story)
    assert all(name in said for name in names)
    assert shop.both() == (2, 0)
    assert elsewhere.backlog().accepted == 0


def test_another_kind_of_database_is_refused(driver: Driver, on_sqlite: Shop, on_postgres: Shop):
    other = on_postgres if driver.dialect == "sqlite" else on_sqlite

    async def story():
        async with driver.opened():
            with pytest.raises(StoreError) as refused:
                await driver.enqueue(other.app, "mail:1")
        return str(refused.value)

    theirs, ours = ("SQLite", "in PostgreSQL") if driver.dialect == "sqlite" else ("PostgreSQL", f"in {other.url}")
    assert play(driver, story).startswith(f"your connection is to {theirs}, the jobs are {ours}. To commit together")


def test_a_worker_that_waits_is_woken_by_the_commit(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            await driver.enqueue(shop.app, "mail:1")
            await driver.commit()

    with waiting(shop) as woken:
        assert not woken.wait(0.05)
        play(driver, story)
        assert woken.wait(10)


@contextmanager
def waiting(shop: Shop) -> Iterator[Event]:
    """Wait for work in a thread and with a store of its own, as another process would; the event tells of some."""
    bell, woken, store = Bell(), Event(), shop.another_store()

    def wait():
        while not store.backlog().accepted and not woken.is_set():
            store.wait(60, bell)
        woken.set()

    thread = Thread(target=wait)
    thread.start()
    try:
        yield woken
    finally:
        woken.set()
        bell.ring()
        thread.join()
        store.close()


on_postgres_alone = pytest.mark.parametrize(
    "kind", [name for name, kind in DRIVERS.items() if kind.dialect == "postgresql"], indirect=True
)


@on_postgres_alone
def test_a_transaction_that_failed_already_is_told(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            with pytest.raises(Exception, match="nowhere"):
                await driver.run("SELECT * FROM nowhere")
            with pytest.raises(
                StoreError, match=r"your connection says: .*\. An earlier statement of your transaction"
            ):
                await driver.enqueue(shop.app, "mail:1")

    play(driver, story)
    assert shop.jobs() == 0


@on_postgres_alone
def test_a_conflict_of_snapshots_is_the_drivers_own_error(shop: Shop, driver: Driver):
    """Whoever works at REPEATABLE READ has a loop that does such a transaction anew, and it looks for this error."""

    async def story():
        async with driver.opened():
            await driver.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            await driver.value("SELECT count(*) FROM orders")
            shop.mail.using(id="mail:1").enqueue("ada")
            with pytest.raises(Exception, match="could not serialize access") as failed:
                await driver.enqueue(shop.app, "mail:1")
        return failed.value

    assert not isinstance(play(driver, story), TreppeError)
    assert shop.jobs() == 1


@on_postgres_alone
def test_how_long_to_wait_for_another_transaction_is_the_callers_own_setting(shop: Shop, driver: Driver):
    with psycopg.connect(shop.url) as other:
        shop.mail.using(id="mail:1", within=other).enqueue("ada")

        async def story():
            async with driver.opened():
                await driver.run("SET LOCAL lock_timeout = '50ms'")
                with pytest.raises(StoreUnavailable, match="your connection says: canceling statement due to lock"):
                    await driver.enqueue(shop.app, "mail:1")

        play(driver, story)
    assert shop.jobs() == 1


@on_postgres_alone
def test_a_database_without_our_tables_is_told(shop: Shop, driver: Driver, postgres18: Server):
    """Where nobody could ask the jobs' own database which one it is."""
    bare = type(driver)(postgres18.socket_url("postgres"))

    async def story():
        async with bare.opened():
            with pytest.raises(
                StoreError, match=r'your connection is to the database "postgres", the jobs are in "test'
            ):
                await bare.enqueue(shop.app, "mail:1")

    play(driver, story)


@on_postgres_alone
def test_a_role_that_may_not_enqueue_is_told(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened():
            await driver.run("SET LOCAL ROLE pg_read_all_stats")
            with pytest.raises(StoreError, match=r"permission denied .*\. Whoever enqueues must be allowed to"):
                await driver.enqueue(shop.app, "mail:1")

    play(driver, story)
