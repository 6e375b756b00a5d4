"""How the caller set up its connection, and what else may be handed over, makes no difference; or is told."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import psycopg_pool
import pytest
import sqlalchemy
from django.db import connections, transaction
from django.utils.connection import ConnectionProxy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

from tests.app.within.conftest import Shop
from tests.app.within.drivers import AsyncPg, Django, Driver, Psycopg, Psycopg2, play, sqlalchemy_url
from tests.servers import Bouncer, Server, free_port, migrated, wait_until
from treppe import Conflict, StoreError, StoreUnavailable, Treppe, Unsupported
from treppe.store.postgres import PostgresStore

AUTOCOMMIT = "this connection is in autocommit: the job would commit alone"


def enqueue_thrice(shop: Shop, connection) -> None:
    """A new job, the same again, and a conflict: every kind of statement and of answer."""
    first = shop.mail.using(id="mail:1", within=connection).enqueue("ada")
    again = shop.mail.using(id="mail:1", within=connection).enqueue("ada")
    assert (first.duplicate, again.duplicate, again.seq) == (False, True, first.seq)
    with pytest.raises(Conflict):
        shop.mail.using(id="mail:1", within=connection).enqueue("bob")


async def aenqueue_thrice(shop: Shop, connection) -> None:
    first = await shop.mail.using(id="mail:1", within=connection).aenqueue("ada")
    again = await shop.mail.using(id="mail:1", within=connection).aenqueue("ada")
    assert (first.duplicate, again.duplicate, again.seq) == (False, True, first.seq)
    with pytest.raises(Conflict):
        await shop.mail.using(id="mail:1", within=connection).aenqueue("bob")


# psycopg 3


class Own(psycopg.Connection):
    """A connection of somebody's own making."""


@pytest.mark.parametrize(
    "settings",
    [
        {"row_factory": dict_row},
        {"cursor_factory": psycopg.ClientCursor},
        {"cursor_factory": psycopg.RawCursor},
        {"prepare_threshold": 0},
        {"prepare_threshold": None},
    ],
    ids=str,
)
def test_psycopg_may_be_set_up_in_any_way(on_postgres: Shop, settings):
    with Own.connect(on_postgres.url, **settings) as connection:
        enqueue_thrice(on_postgres, connection)
        assert on_postgres.jobs() == 0
    assert on_postgres.jobs() == 1


def test_psycopg_in_autocommit_may_have_a_transaction(on_postgres: Shop):
    with psycopg.connect(on_postgres.url, autocommit=True) as connection:
        with connection.transaction():
            enqueue_thrice(on_postgres, connection)
            assert on_postgres.jobs() == 0
        assert on_postgres.jobs() == 1
        with pytest.raises(Unsupported, match=AUTOCOMMIT):
            on_postgres.mail.using(within=connection).enqueue("ada")


@pytest.mark.parametrize("autocommit", [False, True])
def test_psycopg_may_be_in_a_pipeline(on_postgres: Shop, autocommit):
    connection = psycopg.connect(on_postgres.url, autocommit=autocommit)
    with connection, connection.pipeline(), connection.transaction():
        connection.execute("INSERT INTO orders (name) VALUES ('Ada')")
        enqueue_thrice(on_postgres, connection)
        assert on_postgres.jobs() == 0
    assert on_postgres.both() == (1, 1)


def test_a_pipeline_in_autocommit_is_refused(on_postgres: Shop):
    with psycopg.connect(on_postgres.url, autocommit=True) as connection, connection.pipeline():
        connection.execute("INSERT INTO orders (name) VALUES ('Ada')")
        with pytest.raises(Unsupported, match=AUTOCOMMIT):
            on_postgres.mail.using(within=connection).enqueue("ada")
    assert on_postgres.both() == (1, 0)


@pytest.mark.parametrize("autocommit", [False, True])
def test_async_psycopg_may_be_in_a_pipeline(on_postgres: Shop, autocommit):
    async def story():
        connection = await psycopg.AsyncConnection.connect(on_postgres.url, autocommit=autocommit)
        async with connection, connection.pipeline(), connection.transaction():
            await connection.execute("INSERT INTO orders (name) VALUES ('Ada')")
            await aenqueue_thrice(on_postgres, connection)
            assert on_postgres.jobs() == 0

    asyncio.run(story())
    assert on_postgres.both() == (1, 1)


def test_psycopg_may_come_from_a_pool(on_postgres: Shop):
    with psycopg_pool.ConnectionPool(on_postgres.url, min_size=1, open=True) as pool:
        with pool.connection() as connection:
            enqueue_thrice(on_postgres, connection)
        with pytest.raises(Unsupported, match=r"within= cannot use a psycopg_pool\.pool\.ConnectionPool\. Hand over a"):
            on_postgres.mail.using(within=pool).enqueue("ada")
    assert on_postgres.jobs() == 1


def test_a_cursor_is_no_connection(on_postgres: Shop):
    with (
        psycopg.connect(on_postgres.url) as connection,
        pytest.raises(Unsupported, match=r"cannot use a psycopg\.Curs"),
    ):
        on_postgres.mail.using(within=connection.cursor()).enqueue("ada")


def test_only_the_first_job_of_a_connection_asks_where_it_is(on_postgres: Shop):
    class Counting(psycopg.Connection):
        said = 0

        def wait(self, *args, **kwargs):
            self.said += 1
            return super().wait(*args, **kwargs)

    with Counting.connect(on_postgres.url) as connection:
        trips = []
        for n in range(4):
            before = connection.said
            on_postgres.mail.using(id=f"mail:{n}", within=connection).enqueue("ada")
            trips.append(connection.said - before)
    assert trips == [2, 1, 1, 1]


def test_tables_that_were_made_anew_are_no_other_database(postgres18: Server, shop_template: str):
    name = postgres18.create(migrated(postgres18))
    app = Treppe(PostgresStore(postgres18.socket_url(name)))
    task = app.task(name="mail")(lambda: None)
    with psycopg.connect(postgres18.socket_url(name)) as connection:
        task.using(within=connection).enqueue()
    postgres18.execute("DROP SCHEMA treppe CASCADE", name)
    assert app.store.migrate()
    with psycopg.connect(postgres18.socket_url(name)) as connection:
        task.using(within=connection).enqueue()
    assert app.store.backlog().accepted == 1
    app.close()
    postgres18.drop(name)


# psycopg 2


@pytest.mark.parametrize(
    "factory", [psycopg2.extras.RealDictCursor, psycopg2.extras.NamedTupleCursor, psycopg2.extras.LoggingCursor]
)
def test_psycopg2_may_have_any_cursor(on_postgres: Shop, factory):
    with closing(psycopg2.connect(on_postgres.url, cursor_factory=factory)) as connection:
        enqueue_thrice(on_postgres, connection)
        assert on_postgres.jobs() == 0
        connection.commit()
    assert on_postgres.jobs() == 1


def test_psycopg2_in_autocommit_may_have_a_transaction(on_postgres: Shop):
    with closing(psycopg2.connect(on_postgres.url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            enqueue_thrice(on_postgres, connection)
            assert on_postgres.jobs() == 0
            cursor.execute("COMMIT")
    assert on_postgres.jobs() == 1


def test_an_asynchronous_connection_of_psycopg2_is_refused(on_postgres: Shop):
    connection = psycopg2.connect(on_postgres.url, async_=True)
    psycopg2.extras.wait_select(connection)
    with closing(connection), pytest.raises(Unsupported, match="asynchronous connection of psycopg2"):
        on_postgres.mail.using(within=connection).enqueue("ada")


class Proxy:
    """What tracing libraries put around a connection: it says that it is what it hides."""

    def __init__(self, hidden):
        self._hidden = hidden

    def __getattr__(self, name):
        return getattr(self._hidden, name)

    @property
    def __class__(self):
        return self._hidden.__class__


@pytest.mark.parametrize("connect", [psycopg2.connect, psycopg.connect])
def test_a_proxy_around_a_connection_is_seen_through(on_postgres: Shop, connect):
    with closing(connect(on_postgres.url)) as connection:
        enqueue_thrice(on_postgres, Proxy(connection))
        connection.commit()
    assert on_postgres.jobs() == 1


# asyncpg


def test_asyncpg_gives_the_job_back_when_its_pool_takes_the_connection_back(on_postgres: Shop):
    async def story():
        async with asyncpg.create_pool(on_postgres.url, min_size=1, max_size=1) as pool:
            connection = await pool.acquire()
            await connection.transaction().start()
            await aenqueue_thrice(on_postgres, connection)
            await pool.release(connection)
            with pytest.raises(StoreError, match=r"your connection says: .*released back to the pool"):
                await on_postgres.mail.using(within=connection).aenqueue("ada")
            with pytest.raises(Unsupported, match=r"within= cannot use a asyncpg\.pool\.Pool\. Hand over a"):
                await on_postgres.mail.using(within=pool).aenqueue("ada")

    asyncio.run(story())
    assert on_postgres.jobs() == 0


@pytest.mark.parametrize("turns", range(8))
def test_cancelled_in_the_middle_the_job_is_there_whole_or_not_at_all(on_postgres: Shop, turns):
    async def story():
        connection = await asyncpg.connect(on_postgres.url)
        await connection.execute("BEGIN")
        calling = asyncio.create_task(on_postgres.mail.using(id="mail:1", within=connection).aenqueue("ada"))
        for _ in range(turns):
            await asyncio.sleep(0)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await connection.execute("COMMIT")
        await connection.close()

    asyncio.run(story())
    store = on_postgres.app.store
    assert store.backlog().accepted == store.backlog().open == (0 if store.get("mail:1") is None else 1)


# SQLAlchemy


@pytest.fixture
def engine(on_postgres: Shop):
    engine = sqlalchemy.create_engine(sqlalchemy_url("postgresql+psycopg", on_postgres.url))
    yield engine
    engine.dispose()


@contextmanager
def recorded(engine):
    """The statements that go through SQLAlchemy."""
    said = []
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *args: said.append(args[2]))
    yield said


def test_statements_go_through_sqlalchemy_and_never_past_it(on_postgres: Shop, engine):
    with recorded(engine) as said, Session(engine) as session:
        enqueue_thrice(on_postgres, session)
        session.commit()
    assert sum("INSERT INTO treppe.job" in sql for sql in said) == 3


def test_a_scoped_session_is_the_session_of_the_scope(on_postgres: Shop, engine):
    scope = scoped_session(sessionmaker(engine))
    enqueue_thrice(on_postgres, scope)
    assert on_postgres.jobs() == 0
    scope.commit()
    scope.remove()
    assert on_postgres.jobs() == 1


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(sqlalchemy.Identity(always=True), primary_key=True)
    name: Mapped[str]


def test_an_order_of_the_orm_and_its_job_are_one(on_postgres: Shop, engine):
    with Session(engine) as session, session.begin():
        session.add(Order(name="Ada"))
        with session.begin_nested() as nested:
            session.add(Order(name="Bob"))
            on_postgres.mail.using(id="dropped", within=session).enqueue("bob")
            nested.rollback()
        on_postgres.mail.using(id="kept", within=session).enqueue("ada")
    assert on_postgres.both() == (1, 1)
    assert on_postgres.app.store.get("dropped") is None


def test_a_session_with_a_database_for_each_model_is_told_what_to_do(on_postgres: Shop, engine):
    with Session(binds={Order: engine}) as session:
        with pytest.raises(Unsupported, match="this session has a database for each model, and none for the job"):
            on_postgres.mail.using(within=session).enqueue("ada")
        enqueue_thrice(on_postgres, session.connection(bind_arguments={"mapper": Order}))
        session.commit()
    assert on_postgres.jobs() == 1


def test_a_session_that_failed_is_told(on_postgres: Shop, engine):
    with Session(engine) as session:
        session.add(Order(id=1, name="Ada"))  # the database gives the numbers
        with pytest.raises(sqlalchemy.exc.DBAPIError):
            session.flush()
        with pytest.raises(StoreError, match="your connection says: This Session's transaction has been rolled back"):
            on_postgres.mail.using(within=session).enqueue("ada")


def test_a_closed_connection_of_sqlalchemy_is_told(on_postgres: Shop, engine):
    connection = engine.connect()
    connection.close()
    with pytest.raises(StoreError, match="your connection says: This Connection is closed"):
        on_postgres.mail.using(within=connection).enqueue("ada")


def test_an_engine_is_no_connection(on_postgres: Shop, engine):
    with pytest.raises(Unsupported, match=r"within= cannot use a sqlalchemy\.engine\.base\.Engine\. Hand over a"):
        on_postgres.mail.using(within=engine).enqueue("ada")


@pytest.mark.parametrize("where", ["options", "engine options", "engine"])
def test_an_engine_in_autocommit_is_refused(on_postgres: Shop, engine, where):
    level = {"isolation_level": "AUTOCOMMIT"}
    if where == "engine":
        engine = sqlalchemy.create_engine(engine.url, **level)
    elif where == "engine options":
        engine = engine.execution_options(**level)
    with engine.connect() as connection:
        if where == "options":
            connection.execution_options(**level)
        with pytest.raises(Unsupported, match=AUTOCOMMIT):
            on_postgres.mail.using(within=connection).enqueue("ada")
    engine.dispose()
    assert on_postgres.jobs() == 0


def test_a_server_side_cursor_is_no_trouble(on_postgres: Shop, engine):
    with engine.connect().execution_options(stream_results=True, yield_per=1) as connection:
        enqueue_thrice(on_postgres, connection)
        connection.commit()
    assert on_postgres.jobs() == 1


def test_arguments_are_not_in_the_error(on_postgres: Shop, engine):
    """SQLAlchemy would write them down."""
    with engine.connect() as connection:
        connection.exec_driver_sql("SET LOCAL ROLE pg_read_all_stats")
        with pytest.raises(StoreError) as told:
            on_postgres.mail.using(within=connection).enqueue("a secret")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("scheme", ["postgresql+asyncpg", "postgresql+psycopg"])
def test_plain_code_under_run_sync_uses_the_plain_session(on_postgres: Shop, scheme):
    async def story():
        engine = create_async_engine(sqlalchemy_url(scheme, on_postgres.url))
        async with AsyncSession(engine) as session:
            await session.run_sync(lambda plain: enqueue_thrice(on_postgres, plain))
            assert on_postgres.jobs() == 0
            await session.commit()
        await engine.dispose()

    asyncio.run(story())
    assert on_postgres.jobs() == 1


def test_an_async_scoped_session_is_the_session_of_the_scope(on_postgres: Shop):
    async def story():
        engine = create_async_engine(sqlalchemy_url("postgresql+asyncpg", on_postgres.url))
        scope = async_scoped_session(async_sessionmaker(engine), asyncio.current_task)
        await aenqueue_thrice(on_postgres, scope)
        await scope.commit()
        await scope.remove()
        await engine.dispose()

    asyncio.run(story())
    assert on_postgres.jobs() == 1


def test_the_recipe_for_sqlite_that_begins_by_itself(on_sqlite: Shop):
    """From SQLAlchemy's own pages: the driver in autocommit, BEGIN said by an event."""
    engine = sqlalchemy.create_engine(f"sqlite:///{on_sqlite.url}")
    sqlalchemy.event.listen(engine, "connect", lambda raw, _: setattr(raw, "isolation_level", None))
    sqlalchemy.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    with engine.connect() as connection:
        enqueue_thrice(on_sqlite, connection)
        connection.rollback()
        enqueue_thrice(on_sqlite, connection)
        connection.commit()
    engine.dispose()
    assert on_sqlite.jobs() == 1


def test_a_database_without_a_store_is_refused(on_sqlite: Shop, monkeypatch):
    engine = sqlalchemy.create_engine("sqlite://")
    monkeypatch.setattr(engine.dialect, "name", "mysql")
    with (
        engine.connect() as connection,
        pytest.raises(Unsupported, match="cannot use a connection to mysql"),
    ):
        on_sqlite.mail.using(within=connection).enqueue("ada")
    engine.dispose()


# Django


on_both = pytest.mark.parametrize("kind", ["django-postgresql", "django-sqlite"], indirect=True)


@on_both
def test_django_may_hand_over_its_proxy_and_write_down_what_it_says(shop: Shop, driver: Driver, caplog):
    async def story():
        async with driver.opened(autocommit=True):
            proxy = ConnectionProxy(connections, "shop")
            proxy.force_debug_cursor = True
            with transaction.atomic(using="shop"), caplog.at_level(logging.DEBUG, "django.db.backends"):
                enqueue_thrice(shop, proxy)
                assert shop.jobs() == 0

    play(driver, story)
    assert shop.jobs() == 1
    assert "INSERT INTO treppe" in caplog.text


@on_both
def test_django_without_autocommit_needs_no_block(shop: Shop, driver: Driver):
    async def story():
        async with driver.opened(autocommit=True):
            transaction.set_autocommit(False, using="shop")
            enqueue_thrice(shop, connections["shop"])
            assert shop.jobs() == 0
            transaction.commit(using="shop")

    play(driver, story)
    assert shop.jobs() == 1


def test_a_block_of_django_that_must_roll_back_is_told(on_postgres: Shop):
    driver = Django(on_postgres.url)

    async def story():
        async with driver.opened():
            transaction.set_rollback(True, using="shop")
            with pytest.raises(StoreError, match="your connection says: An error occurred in the current transaction"):
                await driver.enqueue(on_postgres.app, "mail:1")

    play(driver, story)
    assert on_postgres.jobs() == 0


# Servers


def test_behind_pgbouncer_and_beside_it(on_postgres: Shop, pgbouncer: Bouncer):
    """The jobs' database is the same, whatever is in between."""
    database = on_postgres.url.partition("?")[0].rpartition("/")[2]

    async def story():
        connection = await asyncpg.connect(pgbouncer.url(database), statement_cache_size=0)
        async with connection.transaction():
            await on_postgres.mail.using(id="asyncpg", within=connection).aenqueue("ada")
        await connection.close()

    asyncio.run(story())
    with psycopg.connect(pgbouncer.url(database), prepare_threshold=None) as connection:
        on_postgres.mail.using(id="psycopg", within=connection).enqueue("ada")
    with closing(psycopg2.connect(pgbouncer.url(database))) as connection:
        on_postgres.mail.using(id="psycopg2", within=connection).enqueue("ada")
        connection.commit()
    assert on_postgres.jobs() == 3


@pytest.mark.parametrize("kind", [Psycopg, Psycopg2, AsyncPg], ids=lambda kind: kind.__name__)
def test_postgresql_15(postgres15: Server, kind):
    name = postgres15.create(migrated(postgres15))
    app = Treppe(PostgresStore(postgres15.socket_url(name)))
    shop = Shop(postgres15.socket_url(name), app)
    driver = kind(shop.url)

    async def story():
        async with driver.opened():
            await driver.enqueue(app, "mail:1")
            assert (await driver.enqueue(app, "mail:1")).duplicate
            with pytest.raises(Conflict):
                await driver.enqueue(app, "mail:1", "bob")
            await driver.commit()

    play(driver, story)
    assert shop.jobs() == 1
    app.close()
    postgres15.drop(name)


# An app of its own


def test_the_very_first_job_may_be_one_of_a_transaction(postgres_url: str):
    """The tables are made by then, outside of it."""
    app = Treppe(postgres_url)
    first = app.task(name="first")(lambda: None)
    with psycopg.connect(postgres_url) as connection:
        first.using(id="gone", within=connection).enqueue()
        connection.rollback()
        first.using(id="kept", within=connection).enqueue()
    assert app.store.backlog().accepted == 1
    app.close()


def test_async_the_very_first_job_may_be_one_of_a_transaction(postgres_url: str):
    app = Treppe(postgres_url)
    first = app.task(name="first")(lambda: None)

    async def story():
        async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
            await first.using(within=connection).aenqueue()

    asyncio.run(story())
    assert app.store.backlog().accepted == 1
    app.close()


def test_a_store_that_does_not_answer_leaves_the_transaction_usable(on_postgres: Shop):
    away = PostgresStore(f"postgresql://postgres@127.0.0.1:{free_port()}/shop")
    with psycopg.connect(on_postgres.url) as connection:
        connection.execute("INSERT INTO orders (name) VALUES ('Ada')")
        with on_postgres.app.instead(away), pytest.raises(StoreUnavailable):
            on_postgres.mail.using(within=connection).enqueue("ada")
    assert on_postgres.both() == (1, 0)
    away.close()


# Several transactions at once


@pytest.mark.parametrize("commits", [True, False])
def test_of_two_transactions_with_one_id_the_second_waits_for_the_first(on_postgres: Shop, commits):
    with psycopg.connect(on_postgres.url) as first, psycopg.connect(on_postgres.url) as second:
        on_postgres.mail.using(id="mail:1", within=first).enqueue("ada")
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(on_postgres.mail.using(id="mail:1", within=second).enqueue, "ada")
            wait_until(lambda: waits(first, second), "the second transaction waits")
            first.commit() if commits else first.rollback()
            assert waiting.result(10).duplicate is commits
    assert on_postgres.jobs() == 1


def test_a_deadlock_is_the_drivers_own_error(on_postgres: Shop):
    """By the order of the caller's own calls; of many jobs in one call the order is always the same."""
    with psycopg.connect(on_postgres.url) as first, psycopg.connect(on_postgres.url) as second:
        on_postgres.mail.using(id="a", within=first).enqueue("ada")
        on_postgres.mail.using(id="b", within=second).enqueue("ada")
        with ThreadPoolExecutor(1) as thread:
            crossing = thread.submit(on_postgres.mail.using(id="b", within=first).enqueue, "ada")
            wait_until(lambda: crossing.done() or waits(second, first), "the first transaction waits")
            ends = [caught(lambda: on_postgres.mail.using(id="a", within=second).enqueue("ada"))]
            if ends[0] is not None:
                second.rollback()
            ends.append(crossing.exception(10))
        assert [type(end) for end in ends if end is not None] == [psycopg.errors.DeadlockDetected]
        first.rollback()
        second.rollback()


def test_many_jobs_in_one_call_never_deadlock(on_postgres: Shop):
    jobs = [on_postgres.mail.using(id=f"mail:{n:03}").prepare("ada") for n in range(200)]

    def call(order: int) -> int:
        with psycopg.connect(on_postgres.url) as connection:
            placed = on_postgres.app.enqueue_many(jobs[:: 1 if order % 2 else -1], within=connection)
        return sum(not one.duplicate for one in placed)

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(call, range(12))) == 200
    assert on_postgres.jobs() == 200


def waits(other: psycopg.Connection, waiting: psycopg.Connection) -> bool:
    """Does one transaction wait for a lock of another's?"""
    with psycopg.connect(other.info.dsn) as look:
        blocking = look.execute("SELECT pg_blocking_pids(%s)", (waiting.info.backend_pid,)).fetchone()
    return other.info.backend_pid in blocking[0]


def caught(call) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None
