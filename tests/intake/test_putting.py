"""The one way in, for threads: what is refused, and how it is said."""

import sqlite3
from contextlib import closing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.errors import Conflict, InvalidJob, StoreUnavailable, TreppeError, Unsupported
from treppe.intake import MAX_PUT, Intake, raise_conflicts
from treppe.job import NewEvent, NewJob, Placed
from treppe.store.sqlite import SQLiteStore

JOB = NewJob("invoice:42", "shop.tasks.invoice", "lexware")
EVENT = NewEvent("shop", "e1", b"{}")
NOWHERE: Any = None


@pytest.fixture
def store(tmp_path):
    store = SQLiteStore(tmp_path / "jobs.db", durable=False)
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def intake(store):
    return Intake(store)


def job(**fields):
    return msgspec.structs.replace(JOB, **fields)


def event(**fields):
    return msgspec.structs.replace(EVENT, **fields)


def test_a_job_that_keeps_the_rules_is_stored(intake, store):
    put = intake.put([job(key="customer:7", priority=-100, delay=0.5, deadline=60.0)])
    assert put.jobs == (Placed("invoice:42", put.jobs[0].seq),)
    assert store.get("invoice:42").key == "customer:7"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": ""}, "id is ''. Use text of 1 to 255 characters"),
        ({"id": "x" * 256}, "Use text of 1 to 255 characters"),
        ({"id": "a\nb"}, "without control characters"),
        ({"id": "a\x00"}, "without control characters"),
        ({"id": "a\x85b"}, "without control characters"),
        ({"id": "lone \ud800"}, "without control characters"),
        ({"id": 42}, "id is 42. Use text"),
        ({"id": None}, "id is None. Use text"),
        ({"task": "my task"}, "task is 'my task'. Use text of 1 to 255 characters without spaces"),
        ({"task": ""}, "task is ''"),
        ({"queue": "Lexware"}, "queue is 'Lexware'. Use up to 128 of a-z 0-9"),
        ({"queue": "lexware\n"}, "queue is 'lexware\\n'"),
        ({"queue": "-lexware"}, "beginning with a letter or digit"),
        ({"queue": "q" * 129}, "Use up to 128"),
        ({"queue": "lex'; drop"}, "queue is"),
        ({"queue": "{tag}"}, "queue is"),
        ({"queue": "büro"}, "queue is"),
        ({"key": ""}, "key is ''. Use text of 1 to 255 characters without control characters, or None"),
        ({"key": "k" * 256}, "key is"),
        ({"key": "\ud800"}, "key is"),
        ({"payload": "text"}, "payload is of type str. Use bytes"),
        ({"payload": b"x", "event": ("shop", "e1")}, "A job of an event has no payload of its own"),
        ({"content_type": "a\rb"}, "content_type is"),
        ({"priority": 101}, "priority is 101. Use a whole number from -100 to 100"),
        ({"priority": -101}, "priority is -101"),
        ({"priority": 1.5}, "priority is 1.5"),
        ({"priority": True}, "priority is True"),
        ({"repeat": "safe"}, "repeat is 'safe'. Use Repeat(\"safe\")"),
        ({"attempts": 0}, "attempts is 0. Use a whole number from 1"),
        ({"attempts": 2.0}, "attempts is 2.0"),
        ({"crashes": 0}, "crashes is 0"),
        ({"delay": -0.1}, "delay is -0.1. Use seconds, from 0 to 100 years"),
        ({"delay": float("nan")}, "delay is nan"),
        ({"delay": float("inf")}, "delay is inf"),
        ({"delay": "5s"}, "delay is '5s'"),
        ({"at": -1.0}, "at is -1.0. Use Unix seconds"),
        ({"at": float("nan")}, "at is nan"),
        ({"at": 1e15}, "before the year 10000"),
        ({"at": 1.0, "delay": 1.0}, "Give at or delay, not both"),
        ({"expires": 0.0}, "expires is 0.0"),
        ({"expires": float("inf")}, "expires is inf"),
        ({"deadline": -1.0}, "deadline is -1.0"),
        ({"deadline": False}, "deadline is False"),
        ({"deadline": ""}, "deadline is ''"),
        ({"keep": -1.0}, "keep is -1.0"),
        ({"keep": float("nan")}, "keep is nan"),
    ],
)
def test_a_job_that_breaks_a_rule_is_refused_by_name_with_the_cure(intake, store, fields, said):
    with pytest.raises(InvalidJob) as error:
        intake.put([JOB, job(**fields)])
    assert said in str(error.value)
    assert str(error.value).startswith(f"job {fields.get('id', 'invoice:42')!r}"[:40])
    assert store.backlog().accepted == 0


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": ""}, "event '': id is ''"),
        ({"id": "x" * 256}, "Use text of 1 to 255"),
        ({"source": ""}, "source is ''"),
        ({"body": "text"}, "body is of type str. Use bytes"),
        ({"topic": "a\x00"}, "topic is"),
        ({"content_type": "x" * 300}, "content_type is"),
    ],
)
def test_an_event_that_breaks_a_rule_is_refused_by_name_with_the_cure(intake, fields, said):
    with pytest.raises(InvalidJob) as error:
        intake.put([], [event(**fields)])
    assert said in str(error.value)


def test_an_event_may_have_no_topic_and_no_content_type(intake):
    assert not intake.put([], [event(topic="", content_type="")]).events[0].duplicate


def test_a_payload_never_appears_in_an_error(intake):
    with pytest.raises(InvalidJob) as error:
        intake.put([job(payload="card 4111")])
    assert "4111" not in str(error.value)


def test_a_payload_may_have_256_kib_and_no_more(intake):
    intake.put([job(payload=b"x" * 262_144)])
    with pytest.raises(InvalidJob, match=r"its payload has 262145 bytes, 262144 are allowed\. Put the data where"):
        intake.put([job(id="b", payload=b"x" * 262_145)])


def test_the_payload_limit_can_be_set(store):
    with pytest.raises(InvalidJob, match="its payload has 11 bytes, 10 are allowed"):
        Intake(store, max_payload=10).put([job(payload=b"x" * 11)])


def test_a_put_is_all_or_nothing_up_to_its_bound(intake, store):
    jobs = [job(id=f"j{number}") for number in range(MAX_PUT)]
    assert len(intake.put(jobs).jobs) == MAX_PUT
    assert store.backlog().accepted == MAX_PUT
    with pytest.raises(InvalidJob, match=r"10001 entries are too many for one put\. Put at most 10000 at once"):
        intake.put([job(id=f"k{number}") for number in range(MAX_PUT)], [EVENT])
    assert store.backlog().accepted == MAX_PUT


def test_inside_a_foreign_transaction_is_refused_by_a_store_that_cannot(store, monkeypatch):
    monkeypatch.setattr(store, "can", msgspec.structs.replace(store.can, within=False))
    with pytest.raises(Unsupported, match="cannot enqueue inside your transaction"):
        Intake(store).plan([JOB])


def test_inside_a_foreign_transaction_the_same_rules_hold(intake, store, tmp_path):
    with pytest.raises(InvalidJob, match="queue is 'Bad'"):
        intake.plan([job(queue="Bad")])
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as mine, mine:
        assert carried_out(intake.plan([JOB]), mine).jobs[0].id == "invoice:42"
    assert store.get("invoice:42").queue == "lexware"


def carried_out(plan, connection):
    rows = None
    while True:
        try:
            rows = connection.execute(*plan.send(rows)).fetchall()
        except StopIteration as end:
            return end.value


def test_a_taken_id_is_an_answer_and_an_error_only_where_it_is_wanted(intake):
    intake.put([JOB])
    same, other = intake.put([JOB]), intake.put([job(queue="other")])
    assert raise_conflicts(same) is same
    assert same.jobs[0].duplicate
    with pytest.raises(Conflict, match='the id "invoice:42" is taken by a job with another queue'):
        raise_conflicts(other)


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300))
def test_whatever_the_texts_are_it_is_stored_or_refused_in_words(id, queue, key):
    try:
        Intake(NOWHERE).check([job(id=id, queue=queue, key=key)])
    except InvalidJob as error:
        str(error).encode()  # a sentence that can be written anywhere
    else:
        assert 0 < len(id) <= 255
        assert id.isprintable() or id.encode()


def test_every_error_of_the_intake_is_one_of_ours():
    assert issubclass(InvalidJob, TreppeError)
    assert issubclass(StoreUnavailable, TreppeError)
