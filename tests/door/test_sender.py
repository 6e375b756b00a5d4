"""What an arrival means: its event, its jobs, and what is said when something cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.door.support import DESTINATIONS, shop, signed
from treppe.config import DAY, Destination, Secret, Source, Verify
from treppe.door.arrival import Arrival, Headers
from treppe.door.presets import PRESETS
from treppe.door.sender import NOTE, Sender
from treppe.errors import ConfigError
from treppe.intake import Intake
from treppe.job import NewJob, Repeat


def generic(**fields):
    return Source("shop", **({"verify": "none", "send_to": ("crm",)} | fields))


def meant(source, sent, destinations=DESTINATIONS):
    arrival = Arrival(Headers(sent.headers), b"".join(sent.pieces))
    return Sender(source, destinations).meaning(arrival)


def notes_in(event):
    return [value for name, value in event.headers if name == NOTE]


# Ids


def test_shopifys_event_is_known_by_event_id_topic_and_shop():
    assert meant(shop(), signed(b"{}")).event.id == "e1:orders/paid:a.example"


def test_two_topics_of_one_shopify_event_are_two_events():
    one, other = (meant(shop(), signed(b"{}", topic=topic)).event.id for topic in (b"orders/paid", b"orders/create"))
    assert one != other


def test_without_an_event_id_shopifys_webhook_id_is_taken():
    sent = signed(b"{}", (b"x-shopify-webhook-id", b"w1"), event_id=b"")
    assert meant(shop(), sent).event.id == "w1:orders/paid:a.example"


def test_standard_webhooks_are_known_by_their_id():
    source = Source("shop", "standard-webhooks", verify="none", send_to=("crm",))
    for name in (b"webhook-id", b"svix-id"):
        sent = signed(b'{"type": "invoice.paid"}', (name, b"msg_1"))
        assert (meant(source, sent).event.id, meant(source, sent).event.topic) == ("msg_1", "invoice.paid")


def test_a_source_may_say_itself_what_makes_an_event_the_same():
    assert meant(generic(id=("body:id", "body:status")), signed(b'{"id": 7, "status": "paid"}')).event.id == "7:paid"
    assert meant(shop(id=("body-hash",)), signed(b"{}")).event.id.startswith("44136fa3")


def test_a_generic_sender_that_signs_its_id_is_known_by_it():
    verify = Verify("X-Sig", signed="{id}{body}", id_header="X-Id")
    source = Source("shop", verify=verify, secrets=(Secret("plain:s"),))
    assert meant(source, signed(b"{}", (b"x-id", b"7"))).event.id == "7"


def test_where_nothing_names_the_event_every_delivery_is_one():
    """Better carried out twice than dropped: some senders repeat one body for every change of state."""
    ids = {meant(generic(), signed(b"id=tr_1")).event.id for _ in range(3)}
    assert len(ids) == 3
    assert notes_in(meant(generic(), signed(b"id=tr_1")).event) == []


@pytest.mark.parametrize("body", [b"[]", b"not json", b"{}", b'{"id": null}', b'{"id": {"a": 1}}'])
def test_an_id_that_cannot_be_found_keeps_the_event_with_a_note(body):
    one, other = (meant(generic(id=("body:id",)), signed(body)) for _ in range(2))
    assert one.event.id != other.event.id
    assert len(one.jobs) == 1
    assert "no event id found: a repeat will not be known as one" in notes_in(one.event)


def test_long_and_odd_ids_are_made_to_fit():
    event = meant(shop(), signed(b"{}", event_id=b"x" * 400)).event
    assert len(event.id) == 255
    job = meant(shop(), signed(b"{}", event_id=b"y" * 240)).jobs[0]
    assert len(job.id) == 255
    assert job.id.startswith("shop:yyy")


# Jobs


def test_each_destination_gets_a_job_of_its_own():
    jobs = meant(shop(send_to=("crm", "mail")), signed(b"{}")).jobs
    assert [job.id for job in jobs] == ["shop:e1:orders/paid:a.example:crm", "shop:e1:orders/paid:a.example:mail"]
    assert [(job.task, job.queue) for job in jobs] == [("destination:crm", "crm"), ("destination:mail", "mail")]
    assert {job.event for job in jobs} == {("shop", "e1:orders/paid:a.example")}
    assert {job.payload for job in jobs} == {b""}


def test_a_job_has_the_settings_of_its_destination_and_keeps_its_id_as_long_as_the_source():
    destination = Destination(
        "crm", "https://crm.example", queue="slow", attempts=9, crashes=2, expires=3600.0, deadline=60.0,
        skip_dead=True, repeat="safe",
    )  # fmt: skip
    job = meant(shop(keep=9 * DAY), signed(b"{}"), {"crm": destination}).jobs[0]
    assert job == NewJob(
        job.id, "destination:crm", "slow", event=job.event, attempts=9, crashes=2, expires=3600.0, deadline=60.0,
        skip_dead=True, keep=9 * DAY, repeat=Repeat.SAFE,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "repeat"),
    [({}, Repeat.ASK), ({"idempotency": "Idempotency-Key"}, Repeat.SAFE), ({"repeat": "safe"}, Repeat.SAFE),
     ({"repeat": "ask", "idempotency": "Idempotency-Key"}, Repeat.ASK)],
)  # fmt: skip
def test_work_is_done_again_by_itself_only_where_that_is_known_to_be_safe(fields, repeat):
    destination = Destination("crm", "https://crm.example", **fields)
    assert meant(shop(), signed(b"{}"), {"crm": destination}).jobs[0].repeat is repeat


def test_the_order_key_is_taken_from_body_or_header():
    assert meant(shop(key="body:customer.id"), signed(b'{"customer": {"id": 7}}')).jobs[0].key == "7"
    assert meant(shop(key="header:X-Customer"), signed(b"{}", (b"x-customer", b"9"))).jobs[0].key == "9"
    assert len(meant(shop(key="body:id"), signed(b'{"id": "%b"}' % (b"k" * 999))).jobs[0].key) == 255


@pytest.mark.parametrize("body", [b"{}", b"[]", b"\xff", b'{"customer": {"id": null}}', b'{"customer": {"id": ""}}'])
def test_without_its_key_a_job_is_made_all_the_same_with_a_note(body):
    found = meant(shop(key="body:customer.id"), signed(body))
    assert found.jobs[0].key is None
    assert "key missing: body:customer.id" in notes_in(found.event)
    assert "key missing: body:customer.id" in found.notes


def test_odd_json_is_noted_when_it_was_looked_into():
    twice = b'{"id": 1, "id": 2}'
    assert meant(shop(key="body:id"), signed(twice)).notes == ("a key stands twice in one object",)
    assert meant(shop(), signed(twice)).notes == ()


# Filters


def test_topics_that_are_not_wanted_make_no_jobs_but_stay_events():
    found = meant(shop(only=("orders/create",)), signed(b"{}"))
    assert (found.jobs, found.event.body) == ((), b"{}")
    assert found.filtered == 'filtered: the topic "orders/paid" is not under only'
    assert notes_in(found.event) == [found.filtered]
    assert len(meant(shop(only=("orders/paid", "x")), signed(b"{}")).jobs) == 1


def test_events_that_fail_the_test_make_no_jobs():
    source = shop(where="body:total > 0")
    assert len(meant(source, signed(b'{"total": "1.00"}')).jobs) == 1
    assert meant(source, signed(b'{"total": "0.00"}')).filtered == "filtered: body:total > 0 does not hold"
    assert meant(source, signed(b"no json")).jobs == ()


# What is kept


def test_headers_are_kept_but_for_those_that_are_nobodys_business():
    sent = signed(
        b"{}", (b"authorization", b"Bearer x"), (b"cookie", b"a=b"), (b"proxy-authorization", b"x"),
        (b"connection", b"close"), (b"transfer-encoding", b"chunked"), (b"content-encoding", b"gzip"),
        (b"x-own", b"\xe4"), (b"treppe-note", b"forged"),
    )  # fmt: skip
    kept = dict(meant(shop(), sent).event.headers)
    assert kept["content-encoding"] == "gzip"
    assert kept["x-own"] == "ä"
    assert kept["x-shopify-topic"] == "orders/paid"
    assert not kept.keys() & {"authorization", "cookie", "proxy-authorization", "connection", "transfer-encoding", NOTE}


def test_repeated_headers_are_all_kept_in_their_order():
    sent = signed(b"{}", (b"x-a", b"1"), (b"x-a", b"2"))
    assert [value for name, value in meant(shop(), sent).event.headers if name == "x-a"] == ["1", "2"]


def test_the_body_is_kept_byte_for_byte():
    surrogate = "\ud800".encode("utf-8", "surrogatepass")
    for body in (b"", b"\x00\xff", b'{"a":1,"a":2}', b"[1, 2 ]", surrogate, b'"\\u0000"'):
        assert meant(shop(), signed(body)).event.body == body


def test_the_content_type_is_kept_or_assumed():
    assert meant(shop(), signed(b"{}")).event.content_type == "application/json"
    sent = signed(b"{}")
    sent.headers = [pair for pair in sent.headers if pair[0] != b"content-type"]
    assert meant(shop(), sent).event.content_type == "application/octet-stream"


# Settings


@pytest.mark.parametrize(
    ("source", "where", "said"),
    [
        (shop(preset="shopfy"), "source.shop.preset", 'Did you mean "shopify"?'),
        (shop(send_to=("crmm",)), "source.shop.send_to", 'there is no destination "crmm". Did you mean "crm"?'),
        (shop(secrets=()), "source.shop.secret", "there is no secret"),
        (shop(secrets=(Secret("env:TREPPE_NOT_SET_IN_TESTS"),)), "env:TREPPE_NOT_SET_IN_TESTS", "is not set"),
        (Source("shop"), "source.shop.verify", "nothing says how this sender signs"),
        (Source("shop", verify=Verify("X"), secrets=()), "source.shop.verify", "there is no secret"),
        (Source("shop", "standard-webhooks", (Secret("plain:hush"),)), "source.shop.secret", "not a secret of"),
        (shop(key="customer.id"), "source.shop.key", "is not a path"),
        (shop(id=("id",)), "source.shop.id", "is not a path"),
        (shop(where="total > 0"), "source.shop.where", "is not a path"),
        (shop(where="body:a => 1"), "source.shop.where", "is not a test"),
        (generic(only=("paid",)), "source.shop.only", "does not know topics"),
        (Source("my shop", verify="none"), "source.my shop", "not a good name"),
        (Source("a:b", verify="none"), "source.a:b", "not a good name"),
        (Source("", verify="none"), "source.", "not a good name"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start_with_place_and_cure(source, where, said):
    with pytest.raises(ConfigError) as error:
        Sender(source, DESTINATIONS)
    assert error.value.where == where
    assert said in str(error.value)
    assert error.value.cure


def test_a_senders_limits_come_from_preset_or_source():
    assert (Sender(shop(), DESTINATIONS).max_body, Sender(shop(), DESTINATIONS).answer) == (5 << 20, 202)
    assert Sender(shop(max_body=1024), DESTINATIONS).max_body == 1024


def test_every_preset_says_what_people_need_to_know():
    assert set(PRESETS) == {"shopify", "standard-webhooks", "generic"}
    for preset in PRESETS.values():
        assert preset.patience
        assert preset.penalty
        assert preset.horizon > 0
        assert 200 <= preset.answer < 300


names = st.sampled_from([b"x-shopify-event-id", b"x-shopify-topic", b"x-shopify-shop-domain", b"content-type",
                         b"content-encoding", b"x-customer"])  # fmt: skip


@given(st.lists(st.tuples(names, st.binary(max_size=300)), max_size=8), st.binary(max_size=100))
def test_whatever_comes_makes_an_event_and_jobs_that_every_store_can_keep(headers, body):
    source = shop(key="body:customer.id", where="body:a != 1", send_to=("crm", "mail"), only=())
    found = Sender(source, DESTINATIONS).meaning(Arrival(Headers(headers), body))
    Intake(None).check(found.jobs, [found.event])
    assert found.event.body == body
    assert len(found.jobs) == 2 or found.filtered
