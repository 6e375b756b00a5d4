import asyncio
import enum
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest

from treppe import Conflict, Context, InvalidJob, State, TreppeError
from treppe.job import Repeat
from treppe.testing.kit import drain


class Customer(enum.Enum):
    ADA = "ada"


@pytest.fixture
def mail(app, clock):
    @app.task(name="shop.mail", queue="mail", key="to", attempts=3, crashes=2, deadline="15m", expires="7d", priority=5)
    def mail(to: str | None, order: int = 0) -> str:
        """Send it."""
        return f"{to} {order}"

    return mail


def test_a_task_still_is_its_function(mail):
    assert mail("ada", order=3) == "ada 3"
    assert (mail.__name__, mail.__doc__, repr(mail)) == ("mail", "Send it.", "<task shop.mail>")


def test_a_call_needs_a_job_where_there_is_a_context(app):
    @app.task(name="shop.with_context")
    def with_context(ctx: Context, to: str) -> None: ...

    with pytest.raises(TreppeError, match=r'task "shop.with_context" needs the context of a job: enqueue it, or call'):
        with_context("ada")


def test_a_job_takes_the_settings_of_its_task(app, mail, clock):
    placed = mail.enqueue("ada", order=42)
    job = app.job(placed.id)
    assert not placed.duplicate
    assert UUID(placed.id).version == 7
    assert (job.task, job.queue, job.key, job.priority) == ("shop.mail", "mail", "ada", 5)
    assert (job.attempts, job.state, job.repeat) == (3, State.WAITING, Repeat.SAFE)
    assert mail.prepare("ada").crashes == 2
    assert (job.due_at, job.deadline_at, job.expires_at) == (clock(), clock() + 900, clock() + 7 * 86400)
    assert msgspec.json.decode(job.payload) == {"to": "ada", "order": 42}


def test_async_code_enqueues_the_same(app, mail):
    placed = asyncio.run(mail.aenqueue("ada", order=42))
    again = asyncio.run(mail.using(id=placed.id, delay=60).aenqueue("ada", order=42))
    assert app.job(placed.id).key == "ada"
    assert again.duplicate


def test_one_call_may_say_it_differently(app, mail, clock):
    placed = mail.using(id="mail:42", delay="15m", key="bob", priority=-7, queue="slow").enqueue("ada")
    job = app.job("mail:42")
    assert placed.id == "mail:42"
    assert (job.queue, job.key, job.priority, job.due_at) == ("slow", "bob", -7, clock() + 900)


@pytest.mark.parametrize(
    ("said", "due"),
    [
        ({"delay": 90}, 90),
        ({"delay": 0.25}, 0.25),
        ({"delay": timedelta(hours=2)}, 7200),
        ({"delay": "1h30m"}, 5400),
        ({"at": 1_700_000_600.0}, 600),
        ({"at": datetime.fromtimestamp(1_700_000_600, UTC)}, 600),
        ({"at": datetime.fromtimestamp(1_700_000_600, timezone(timedelta(hours=5)))}, 600),
        ({"at": 5}, 5 - 1_700_000_000),
        ({}, 0),
    ],
)
def test_a_job_becomes_due_when_it_was_said(app, mail, clock, said, due):
    assert app.job(mail.using(**said).enqueue("ada").id).due_at == clock() + due


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"delay": -1}, 'task "shop.mail": delay: -1 is out of bounds. Choose one from 0s to 3660d'),
        ({"delay": "soon"}, 'task "shop.mail": delay: "soon" is not a duration. Write a number and a unit'),
        ({"delay": None}, "delay: None is not a duration"),
        ({"delay": 5, "at": 7.0}, 'task "shop.mail": at: delay is given as well. Give one of them'),
        ({"at": datetime(2026, 11, 27)}, "at: this time has no time zone. Write datetime(…, tzinfo=UTC)"),  # noqa: DTZ001
        ({"at": "tomorrow"}, "at: 'tomorrow' is not a time. Give Unix seconds, or a datetime with a time zone"),
        ({"at": float("nan")}, "at is nan. Use Unix seconds before the year 10000"),
        ({"id": ""}, "id is ''. Use text of 1 to 255 characters without control characters"),
        ({"id": "x" * 256}, "id is 'xxx"),
        ({"id": "a\0"}, "id is 'a\\x00'"),
        ({"id": 7}, "id is 7"),
        ({"key": ""}, "key is ''"),
        ({"queue": ""}, "queue is ''. Use up to 128 of a-z"),
        ({"queue": "No Queue"}, "queue is 'No Queue'"),
        ({"priority": 101}, "priority is 101. Use a whole number from -100 to 100"),
    ],
)
def test_a_call_that_cannot_be_is_refused_with_a_sentence(app, mail, said, sentence):
    with pytest.raises(InvalidJob) as refused:
        mail.using(**said).enqueue("ada")
    assert sentence in str(refused.value)
    assert app.store.backlog().accepted == 0


def test_an_argument_that_is_too_large_is_refused(app, clock):
    task = app.task(name="large")(lambda text: None)
    with pytest.raises(InvalidJob, match=r"its payload has 300\d+ bytes, 262144 are allowed. Put the data where"):
        task.enqueue("x" * 300_000)


@pytest.mark.parametrize(
    ("hint", "value", "key"),
    [
        (str, "ada", "ada"),
        (int, 42, "42"),
        (str | None, None, None),
        (Customer, Customer.ADA, "ada"),
        (UUID, UUID(int=7), str(UUID(int=7))),
        (Decimal, Decimal("1.50"), "1.50"),
    ],
)
def test_the_order_key_is_an_argument(app, clock, hint, value, key):
    @app.task(name="keyed", key="customer")
    def keyed(customer: hint, n: int = 0) -> None: ...

    assert app.job(keyed.enqueue(value).id).key == key


def test_a_default_may_be_the_order_key(app, clock):
    @app.task(name="keyed", key="customer")
    def keyed(customer: str = "anybody") -> None: ...

    assert app.job(keyed.enqueue().id).key == "anybody"


@pytest.mark.parametrize(("value", "kind"), [(1.5, "float"), (True, "bool"), ([1], "list")])
def test_an_order_key_of_another_kind_is_refused(app, clock, value, kind):
    @app.task(name="keyed", key="customer")
    def keyed(customer) -> None: ...

    with pytest.raises(InvalidJob, match=f'the order key "customer" is a {kind}. Use a text, a whole number, or None'):
        keyed.enqueue(value)


def test_the_same_work_again_is_the_first_job(app, mail):
    first = mail.using(id="mail:42").enqueue("ada", order=42)
    again = mail.using(id="mail:42", delay="1h").enqueue(to="ada", order=42)
    assert (again.seq, again.duplicate) == (first.seq, True)
    assert app.store.backlog().accepted == 1


def test_other_work_of_the_same_id_is_a_conflict(app, mail):
    other = app.task(name="shop.other", queue="mail")(lambda to: None)
    mail.using(id="mail:42").enqueue("ada")
    with pytest.raises(Conflict, match='the id "mail:42" is taken by a job with another content') as found:
        mail.using(id="mail:42").enqueue("bob")
    assert (found.value.id, found.value.differs) == ("mail:42", "content")
    for call, differs in (
        (mail.using(id="mail:42", queue="slow"), "queue"),
        (other.using(id="mail:42"), "task"),
    ):
        with pytest.raises(Conflict) as found:
            call.enqueue("ada")
        assert found.value.differs == differs
    assert app.store.backlog().accepted == 1


def test_an_id_stays_taken_after_the_end(app, mail):
    placed = mail.using(id="mail:42").enqueue("ada")
    drain(app)
    assert app.job("mail:42").state is State.DONE
    assert mail.using(id="mail:42").enqueue("ada").seq == placed.seq


def test_many_jobs_are_prepared_one_by_one_and_stored_at_once(app, mail, clock):
    jobs = [mail.using(id=f"mail:{n}", delay=n).prepare("ada", n) for n in range(300)]
    assert app.store.backlog().accepted == 0
    placed = app.enqueue_many([*jobs, mail.prepare("bob")])
    assert [one.id for one in placed[:300]] == [f"mail:{n}" for n in range(300)]
    assert app.store.backlog().accepted == 301
    assert app.job("mail:7").due_at == clock() + 7


def test_many_jobs_are_stored_by_async_code(app, mail):
    placed = asyncio.run(app.aenqueue_many(mail.prepare(name) for name in ("ada", "bob")))
    assert [app.job(one.id).key for one in placed] == ["ada", "bob"]


def test_one_bad_job_of_many_stores_none(app, mail):
    jobs = [mail.prepare("ada"), mail.using(queue="No Queue").prepare("bob")]
    with pytest.raises(InvalidJob, match="queue is 'No Queue'"):
        app.enqueue_many(jobs)
    assert app.store.backlog().accepted == 0


def test_a_conflict_among_many_leaves_the_others(app, mail):
    mail.using(id="a").enqueue("ada")
    with pytest.raises(Conflict):
        app.enqueue_many([mail.using(id="a").prepare("bob"), mail.using(id="b").prepare("bob")])
    assert app.job("b").key == "bob"


def test_a_connection_belongs_where_the_jobs_are_stored(mail):
    with pytest.raises(InvalidJob, match="give within= to enqueue_many, where the jobs are stored"):
        mail.using(within=object()).prepare("ada")
