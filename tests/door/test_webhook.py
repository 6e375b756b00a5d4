"""The door: what is stored, what is answered, and what is never answered."""

import asyncio
import base64
import hashlib
import json
import logging
import threading
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.door.support import Sent, ask, asked, shop, signed
from treppe.config import Source, Web
from treppe.door.disk import DiskWatch
from treppe.door.guard import Guard
from treppe.door.webhook import CONFLICTS, MOST_CONFLICT_BYTES, MOST_CONFLICTS
from treppe.errors import StoreUnavailable
from treppe.intake import Batcher, Intake
from treppe.job import NewJob, State

EVENT_ID = "e1:orders/paid:a.example"


def nothing_stored(store):
    return store.backlog().accepted == 0 and store.event("shop", EVENT_ID) is None


# Accepted


def test_a_signed_webhook_is_stored_and_answered(door_of, store):
    reply = ask(door_of(), signed(b'{"id": 1}'))
    assert (reply.status, reply.headers[b"content-type"]) == (202, b"application/json")
    assert reply.json == {"id": EVENT_ID, "state": "accepted", "duplicate": False}
    event = store.event("shop", EVENT_ID)
    assert (event.body, event.topic, event.content_type) == (b'{"id": 1}', "orders/paid", "application/json")
    job = store.get(f"shop:{EVENT_ID}:crm")
    assert (job.state, job.task, job.event) == (State.WAITING, "destination:crm", ("shop", EVENT_ID))


def test_the_answer_names_a_status_page_where_there_is_one(door_of):
    door = door_of(status_url=lambda source, event: f"https://t.example/{source}/{event}")
    assert ask(door, signed(b"{}")).json["status_url"] == f"https://t.example/shop/{EVENT_ID}"


def test_a_repeat_gets_the_same_answer_and_adds_nothing(door_of, store):
    door = door_of(shop(send_to=("crm", "mail")))
    first, again = ask(door, signed(b"{}")), ask(door, signed(b"{}"))
    assert (first.status, again.status) == (202, 202)
    assert again.json == first.json | {"duplicate": True}
    assert store.backlog().accepted == 2
    assert store.journal.page(CONFLICTS) == []


def test_fifty_at_once_of_which_each_comes_twice_are_fifty(door_of, store):
    door = door_of()

    async def rush():
        sents = [signed(b"{}", event_id=b"e%d" % (number % 50)) for number in range(100)]
        return await asyncio.gather(*[asked(door, sent) for sent in sents])

    replies = asyncio.run(rush())
    assert [reply.status for reply in replies] == [202] * 100
    assert sum(reply.json["duplicate"] for reply in replies) == 50
    assert store.backlog().accepted == 50


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'"text"', b"id=tr_1&x=%00", b"\x00\xff\xfe", b'{"a":1,"a":2}', b'{"n":NaN}', b'"\\ud800 \\u0000"',
     "ü\u2028".encode(), b"[" * 100_000, b"x" * (5 << 20)],
    ids=["empty", "array", "string", "form", "bytes", "twice", "nan", "surrogate", "unicode", "deep", "5MiB"],
)  # fmt: skip
def test_any_body_is_taken_byte_for_byte(door_of, store, body):
    reply = ask(door_of(shop(key="body:customer.id")), signed(body))
    assert (reply.status, store.event("shop", EVENT_ID).body) == (202, body)
    assert store.get(f"shop:{EVENT_ID}:crm").key is None


def test_a_compressed_body_is_stored_as_it_came(door_of, store):
    ask(door_of(), signed(b"\x1f\x8b\x08wire", (b"content-encoding", b"gzip")))
    event = store.event("shop", EVENT_ID)
    assert (event.body, dict(event.headers)["content-encoding"]) == (b"\x1f\x8b\x08wire", "gzip")


def test_a_body_in_pieces_is_put_together(door_of, store):
    sent = signed(b"0123456789")
    sent.pieces = (b"012", b"", b"3456", b"789")
    assert ask(door_of(), sent).status == 202
    assert store.event("shop", EVENT_ID).body == b"0123456789"


def test_what_is_filtered_is_stored_without_jobs_and_counted(door_of, store):
    door = door_of(shop(only=("orders/create",)))
    reply = ask(door, signed(b"{}"))
    assert reply.json == {"id": EVENT_ID, "state": "accepted", "duplicate": False, "filtered": True}
    assert store.event("shop", EVENT_ID).body == b"{}"
    assert store.backlog().accepted == 0
    assert (door.figures.source("shop").accepted, door.figures.source("shop").filtered) == (1, 1)


def test_a_missing_key_is_noted_beside_the_event_and_in_the_figures(door_of, store):
    door = door_of(shop(key="body:customer.id"))
    ask(door, signed(b"{}"))
    assert ("treppe-note", "key missing: body:customer.id") in store.event("shop", EVENT_ID).headers
    assert door.figures.source("shop").notes == {"key missing: body:customer.id": 1}


def test_a_sender_that_cannot_sign_is_believed_only_where_that_is_said(door_of, store):
    door = door_of(Source("form", verify="none", id=("body:id",), send_to=("crm",)))
    assert ask(door, Sent(path="/in/form", pieces=(b'{"id": 7}',))).json["id"] == "7"
    assert store.get("form:7:crm")


# Conflicts


def test_the_same_id_with_another_body_is_answered_alike_and_kept_as_a_conflict(door_of, store):
    door = door_of(clock=lambda: 1234.5)
    ask(door, signed(b"first"))
    reply = ask(door, signed(b"second \xff", (b"cookie", b"secret")))
    assert (reply.status, reply.json["duplicate"]) == (202, True)
    assert store.event("shop", EVENT_ID).body == b"first"
    [record] = store.journal.page(CONFLICTS)
    entry = json.loads(record.record)
    assert base64.b64decode(entry.pop("body")) == b"second \xff"
    headers = dict(entry.pop("headers"))
    assert "x-shopify-topic" in headers
    assert "cookie" not in headers
    assert entry == {
        "source": "shop", "id": EVENT_ID, "at": 1234.5, "differs": {EVENT_ID: "content"}, "topic": "orders/paid",
        "bytes": 8, "sha256": hashlib.sha256(b"second \xff").hexdigest(),
    }  # fmt: skip
    assert (door.figures.source("shop").conflicts, door.figures.source("shop").duplicates) == (1, 1)


def test_a_job_id_that_somebody_else_took_is_a_conflict_too(door_of, store):
    Intake(store).put([NewJob(f"shop:{EVENT_ID}:crm", "my.task", "mine")])
    reply = ask(door_of(), signed(b"{}"))
    assert (reply.status, reply.json["duplicate"]) == (202, False)
    [record] = store.journal.page(CONFLICTS)
    assert json.loads(record.record)["differs"] == {f"shop:{EVENT_ID}:crm": "task"}


def test_of_a_large_conflict_the_beginning_is_kept(door_of, store):
    door = door_of()
    ask(door, signed(b"first"))
    ask(door, signed(b"x" * (MOST_CONFLICT_BYTES + 1)))
    entry = json.loads(store.journal.page(CONFLICTS)[0].record)
    assert (len(base64.b64decode(entry["body"])), entry["bytes"]) == (MOST_CONFLICT_BYTES, MOST_CONFLICT_BYTES + 1)


def test_conflicts_do_not_pile_up_for_ever(door_of, store):
    store.journal.append(CONFLICTS, [b"{}"] * (MOST_CONFLICTS + 5))
    door = door_of()
    ask(door, signed(b"first"))
    ask(door, signed(b"second"))
    newest = store.journal.page(CONFLICTS, n=1000, newest_first=True)
    assert len(newest) == MOST_CONFLICTS
    assert b"second" in base64.b64decode(json.loads(newest[0].record)["body"])


def test_a_conflict_that_cannot_be_written_down_is_not_answered_as_accepted(door_of, store, monkeypatch, caplog):
    door = door_of()
    ask(door, signed(b"first"))

    def fails(stream, records):
        raise StoreUnavailable("disk full")

    monkeypatch.setattr(store.journal, "append", fails)
    assert ask(door, signed(b"second")).status == 503
    assert "disk full" in caplog.text


# Refused


@pytest.mark.parametrize(
    ("sent", "code", "said"),
    [
        (signed(b"{}", secret=b"wrong"), "signature-wrong", "The signature does not match"),
        (Sent(pieces=(b"{}",)), "signature-missing", "The header x-shopify-hmac-sha256 is missing"),
        (signed(b"{}", (b"x-shopify-hmac-sha256", b"x")), "signature-repeated", "came more than once"),
        (Sent(headers=[(b"x-shopify-hmac-sha256", b"")]), "signature-empty", "is empty"),
        (Sent(headers=[(b"x-shopify-hmac-sha256", b"\xff\x00")]), "signature-wrong", "does not match"),
    ],
)
def test_a_bad_signature_is_401_and_stores_nothing(door_of, store, sent, code, said):
    door = door_of()
    reply = ask(door, sent)
    assert (reply.status, reply.headers[b"content-type"]) == (401, b"application/problem+json")
    assert (reply.json["title"], reply.json["status"]) == ("Unauthorized", 401)
    assert reply.headers[b"www-authenticate"] == b"Signature"
    assert said in reply.json["detail"]
    assert door.figures.source("shop").refused == {code: 1}
    assert nothing_stored(store)


@pytest.mark.parametrize("path", ["/in/other", "/in/", "/in", "/in/shop/x", "/in/../in/shop", "/", "/IN/shop", "/in//"])
def test_an_unknown_source_is_404(door_of, store, path):
    sent = signed(b"{}", path=path)
    assert ask(door_of(), sent).json == {
        "title": "Not Found", "status": 404, "detail": "There is no source of this name",
    }  # fmt: skip
    assert nothing_stored(store)


def test_a_slash_at_the_end_does_no_harm(door_of):
    assert ask(door_of(), signed(b"{}", path="/in/shop/")).status == 202


def test_a_door_may_be_mounted_below_a_path(door_of):
    sent = signed(b"x" * (2 << 20), path="/hooks/in/shop")
    sent.root_path = "/hooks"
    assert ask(door_of(), sent).status == 202


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "post"])
def test_other_methods_are_405_and_told_which_are_right(door_of, method):
    sent = signed(b"{}")
    sent.method = method
    reply = ask(door_of(), sent)
    assert (reply.status, reply.headers[b"allow"]) == (405, b"GET, HEAD, POST, OPTIONS")


def test_a_body_beyond_the_limit_is_413_and_stores_nothing(door_of, store):
    door = door_of(shop(max_body=1024))
    assert ask(door, signed(b"x" * 1024)).status == 202
    for sent in (
        signed(b"x" * 1025, event_id=b"e2"),
        Sent(headers=[(b"content-length", b"9" * 30)]),
        Sent(pieces=(b"x" * 1000,) * 3),
    ):
        reply = ask(door, sent)
        assert (reply.status, reply.headers[b"connection"]) == (413, b"close")
        assert reply.json["detail"] == "The body may have at most 1024 bytes"
    assert store.backlog().accepted == 1


def test_a_sender_that_leaves_in_the_middle_stores_nothing_and_gets_no_answer(door_of, store):
    sent = signed(b"{}")
    sent.leaves = True
    assert ask(door_of(), sent) is None
    assert nothing_stored(store)


def test_a_body_that_does_not_end_is_408(door_of, store):
    sent = signed(b"{}")
    sent.ends = False
    reply = ask(door_of(web=Web(body_timeout=0.02)), sent)
    assert (reply.status, reply.json["detail"]) == (408, "The body was not there within 0.02 s")
    assert nothing_stored(store)


def test_too_many_headers_are_refused_also_without_a_guard_in_front(door_of, store):
    assert ask(door_of(), signed(b"{}", *[(b"x-%d" % n, b"") for n in range(100)])).status == 431
    assert nothing_stored(store)


# Our own trouble


@pytest.mark.parametrize("error", [StoreUnavailable("database is locked"), ValueError("a bug"), MemoryError()])
def test_every_trouble_of_the_store_is_503_with_retry_after(door_of, store, monkeypatch, caplog, error):
    def fails(jobs, events=()):
        raise error

    monkeypatch.setattr(store, "put", fails)
    monkeypatch.setattr(store, "try_put", fails)
    door = door_of()
    reply = ask(door, signed(b"{}"))
    assert (reply.status, reply.headers[b"retry-after"]) == (503, b"5")
    assert reply.json["detail"] == "It could not be stored right now. Please send it again"
    assert door.figures.source("shop").refused == {"store": 1}
    [record] = [record for record in caplog.records if record.name == "treppe.door"]
    assert (record.levelno == logging.WARNING) == isinstance(error, StoreUnavailable)


class HeldStore:
    """A store whose disk does not answer."""

    can = SimpleNamespace(puts_at_once=False)

    def __init__(self):
        self.let_go = threading.Event()

    def put(self, jobs, events=()):
        assert self.let_go.wait(10)
        raise StoreUnavailable("let go")


@pytest.fixture
def stuck():
    held = HeldStore()
    batcher = Batcher(Intake(held), patience=0.05, room=1)
    yield batcher
    held.let_go.set()
    batcher.close()


def test_a_store_that_takes_too_long_is_503(door_of, stuck, caplog):
    assert ask(door_of(batcher=stuck), signed(b"{}")).status == 503
    assert "not on disk after 0.05 s" in caplog.text


def test_more_than_can_wait_is_503_at_once(door_of, stuck, caplog):
    door = door_of(batcher=stuck)

    async def rush():
        return await asyncio.gather(*[asked(door, signed(b"{}", event_id=b"e%d" % n)) for n in range(5)])

    assert [reply.status for reply in asyncio.run(rush())] == [503] * 5
    assert "too much waits to be stored" in caplog.text


def test_a_full_disk_is_503_before_anything_is_stored(door_of, store, tmp_path):
    door = door_of(disk=DiskWatch(tmp_path, usage=lambda folder: (100 << 30, 0, 1 << 20)))
    reply = ask(door, signed(b"{}"))
    assert (reply.status, reply.headers[b"retry-after"]) == (503, b"5")
    assert "too little room on our disk" in reply.json["detail"]
    assert door.figures.source("shop").refused == {"disk-full": 1}
    assert nothing_stored(store)


# Small talk


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_whoever_only_looks_gets_200_and_nothing_else(door_of, method):
    reply = ask(door_of(), Sent(method=method))
    assert (reply.status, reply.body) == (200, b"")


def test_whoever_looks_for_an_unknown_source_gets_404(door_of):
    assert ask(door_of(), Sent(method="HEAD", path="/in/other")).status == 404


def test_cloudevents_are_allowed_when_they_ask(door_of):
    reply = ask(door_of(), Sent(method="OPTIONS", headers=[(b"webhook-request-origin", b"events.example")]))
    assert reply.status == 200
    assert reply.headers[b"webhook-allowed-origin"] == b"events.example"
    assert reply.headers[b"webhook-allowed-rate"] == b"*"
    assert b"POST" in reply.headers[b"allow"]


def test_an_options_request_without_an_origin_is_no_consent(door_of):
    reply = ask(door_of(), Sent(method="OPTIONS"))
    assert (reply.status, reply.headers.keys()) == (200, {b"allow", b"content-length"})


def test_what_is_not_http_is_left_alone(door_of):
    assert ask(door_of(), Sent(type="lifespan")) is None
    assert ask(door_of(), Sent(type="websocket")) is None


# Figures


def test_answers_are_counted_and_timed(door_of):
    door = door_of()
    for number in range(3):
        ask(door, signed(b"{}", event_id=b"e%d" % (number % 2)))
    ask(door, signed(b"{}", path="/in/nobody"))
    figures = door.figures.source("shop")
    assert (figures.accepted, figures.duplicates, figures.conflicts) == (2, 1, 0)
    assert door.figures.refused == {"unknown-source": 1}
    assert 0 < door.figures.answer_time(0.5) <= door.figures.answer_time(0.99) < 10


def test_behind_a_guard_it_works_the_same(door_of, store):
    door = door_of()
    guard = Guard(door, Web(), door.max_body)
    assert ask(guard, signed(b"x" * (2 << 20))).status == 202
    assert ask(guard, signed(b"{}", secret=b"wrong", event_id=b"e2")).status == 401
    assert store.backlog().accepted == 1


# Whatever comes

header_names = st.sampled_from([
    b"x-shopify-hmac-sha256", b"x-shopify-event-id", b"content-length", b"content-type", b"content-encoding", b"x",
    b"transfer-encoding", b"webhook-request-origin", b"authorization",
])  # fmt: skip
sents = st.builds(
    Sent,
    method=st.sampled_from(["POST", "GET", "HEAD", "OPTIONS", "PUT"]),
    path=st.sampled_from(["/in/shop", "/in/open", "/in/", "/"]) | st.text(max_size=20),
    headers=st.lists(st.tuples(header_names, st.binary(max_size=60)), max_size=6),
    pieces=st.lists(st.binary(max_size=40), min_size=1, max_size=3).map(tuple),
    leaves=st.booleans(),
    client=st.sampled_from([None, ("192.0.2.1", 1)]),
)


@given(sents)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_no_request_ever_ends_in_an_exception_or_a_500(door_of, store, sent):
    door = door_of(Source("open", verify="none", key="body:a.b", where="body:c > 0", send_to=("crm",)))
    for app in (door, door_of()):
        reply = ask(app, sent)
        assert reply is None or reply.status in (200, 202, 400, 401, 404, 405, 413)
        assert reply is not None or sent.leaves
