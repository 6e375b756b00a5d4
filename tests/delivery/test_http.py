"""The handler of destinations from claim to outcome, and what must never be seen of it."""

import gc
import logging
from base64 import b64encode

import msgspec
import pytest

from tests.delivery.support import claim, deliver, destination, detail, probe, with_delivery
from treppe.config import Auth, Destination, Secret
from treppe.delivery.http import Delivery
from treppe.errors import ConfigError
from treppe.job import Kind, Repeat
from treppe.testing.destination import FakeDestination, answer, drop, raw, throttled

CANARY = "s3cret-canary-4711"


@pytest.mark.parametrize(
    ("step", "kind", "acted", "after"),
    [
        (answer(200), Kind.OK, True, None),
        (answer(204), Kind.OK, True, None),
        (answer(302, headers={"Location": "https://new.example/"}), Kind.MOVED, False, None),
        (answer(400), Kind.REFUSED, False, None),
        (answer(401), Kind.LOGIN, False, None),
        (answer(404), Kind.GONE, False, None),
        (answer(407), Kind.DOWN, False, None),
        (answer(408), Kind.AGAIN, False, None),
        (answer(409), Kind.REFUSED, False, None),
        (answer(422), Kind.REFUSED, False, None),
        (throttled(30), Kind.THROTTLED, False, 30.0),
        (throttled("Thu, 01 Jan 1970 00:00:00 GMT"), Kind.THROTTLED, False, 0.0),
        (throttled("soon"), Kind.THROTTLED, False, None),
        (answer(500), Kind.FAILED, None, None),
        (answer(503), Kind.FAILED, False, None),
        (answer(503, headers={"Retry-After": "7"}), Kind.THROTTLED, False, 7.0),
        (drop(), Kind.FAILED, None, None),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_each_answer_becomes_its_outcome(step, kind, acted, after):
    with FakeDestination(step) as target:
        outcome = deliver(destination(target))
    assert (outcome.kind, outcome.acted, outcome.after) == (kind, acted, after)
    assert len(target.calls) == 1


def test_an_idempotency_conflict_waits_and_keeps_its_key():
    with FakeDestination(answer(409), answer(201)) as target:
        to = destination(target, idempotency="Idempotency-Key")
        assert [deliver(to, claims=n).kind for n in (1, 2)] == [Kind.AGAIN, Kind.OK]
    assert [call.header("idempotency-key") for call in target.calls] == ["invoice:42", "invoice:42"]
    assert [call.header("treppe-attempt") for call in target.calls] == ["1", "2"]


def test_a_delivery_that_goes_round_in_circles_is_stopped():
    with FakeDestination() as target:
        to = destination(target)
        assert deliver(to, headers=(("Treppe-Hop", "5"),)).kind is Kind.OK
        outcome = deliver(to, headers=(("Treppe-Hop", "6"),))
    assert (outcome.kind, outcome.acted) == (Kind.REFUSED, False)
    assert outcome.error == "loop: it came back to our own door 6 times"
    assert [call.header("treppe-hop") for call in target.calls] == ["6"]


def test_a_missing_secret_holds_the_queue_and_names_itself():
    with FakeDestination() as target:
        outcome = deliver(destination(target, auth=Auth("bearer", token=Secret("env:NOT_SET_ANYWHERE"))))
    assert (outcome.kind, outcome.acted, target.calls) == (Kind.DOWN, False, ())
    assert outcome.error.startswith("env:NOT_SET_ANYWHERE: this environment variable is not set")


def test_a_rotated_secret_counts_at_once():
    tokens = iter([b"old", b"new"])
    with FakeDestination() as target:
        to = destination(target, auth=Auth("bearer", token=Secret("env:TOKEN")))

        async def twice(delivery):
            return [await delivery.run(claim(to)) for _ in range(2)]

        with_delivery(to, twice, open_secret=lambda _: next(tokens))
    assert [call.header("authorization") for call in target.calls] == ["Bearer old", "Bearer new"]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"url": "http://crm.example/", "allow_http": False}, "not encrypted"),
        ({"url": f"https://me:{CANARY}@crm.example/"}, "user name or a password"),
        ({"url": "https://crm.example:0/"}, "port 0"),
        ({"allow_networks": ("office",)}, '"office" is not a network'),
        ({"headers": (("X-Shop", f"{CANARY}\r\nX-Evil: 1"),)}, "line break"),
        ({"headers": (("Host", "evil.example"),)}, "cannot be set"),
    ],
)
def test_a_wrong_setting_holds_the_queue_instead_of_burying_jobs(wrong, problem):
    with FakeDestination() as target:
        outcome = deliver(msgspec.structs.replace(destination(target), **wrong))
    assert (outcome.kind, outcome.acted, target.calls) == (Kind.DOWN, False, ())
    assert problem in outcome.error
    assert CANARY not in outcome.error + (outcome.detail or b"").decode()


def test_a_probe_is_a_get_that_tells_whether_the_target_answers():
    with FakeDestination(answer(503), answer(200)) as target:
        to = destination(target, auth=Auth("bearer", token=Secret("plain:token")))
        assert [probe(to, target.url + "ping").kind for _ in range(2)] == [Kind.FAILED, Kind.OK]
    assert {(call.method, call.path, call.body, call.header("authorization")) for call in target.calls} == {
        ("GET", "/ping", b"", "Bearer token")
    }


def test_a_probe_is_not_repeated_behind_our_back():
    with FakeDestination(drop()) as target:
        assert probe(destination(target), target.url).kind is Kind.FAILED
    assert len(target.calls) == 1


def test_a_probe_obeys_the_guard_and_misses_its_secret_like_a_delivery():
    with FakeDestination() as target:
        assert probe(destination(target, allow_networks=()), target.url).kind is Kind.DOWN
        assert probe(destination(target, auth=Auth("bearer")), target.url).kind is Kind.DOWN
    assert target.calls == ()


def test_a_probe_that_is_not_set_is_told():
    to = destination("https://crm.example/")
    with pytest.raises(ConfigError, match=r"destination\.crm\.probe: this is not set"):
        with_delivery(to, lambda delivery: delivery.probe(to))


def test_it_handles_the_tasks_of_its_destinations():
    crm, mail = destination("https://crm.example/"), Destination("mail", "https://mail.example/")
    assert Delivery({"crm": crm, "mail": mail}).tasks == {"destination:crm", "destination:mail"}


LOGINS = [
    Auth("bearer", token=Secret(f"plain:{CANARY}")),
    Auth("basic", user="me", password=Secret(f"plain:{CANARY}")),
    Auth("header", name="X-Api-Key", value=Secret(f"plain:{CANARY}")),
]
ECHO = {"Server": CANARY, "WWW-Authenticate": f"Bearer {CANARY}", "Location": f"/x?key={CANARY}", "Set-Cookie": CANARY}


@pytest.mark.parametrize("auth", LOGINS, ids=lambda auth: auth.kind)
@pytest.mark.parametrize("status", [200, 302, 401, 422, 500])
def test_no_secret_is_seen_even_when_the_target_sends_it_back(auth, status, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    encoded = b64encode(f"me:{CANARY}".encode()).decode() if auth.kind == "basic" else CANARY
    with FakeDestination(answer(status, f"you sent {CANARY} and {encoded}".encode(), ECHO)) as target:
        to = destination(f"{target.url}in?key={CANARY}", auth=auth, headers=(("X-Shop-Token", CANARY),))
        outcome = deliver(to, repeat=Repeat.ASK)
    seen = repr(outcome) + caplog.text + "".join(capsys.readouterr()) + repr(to.auth)
    assert CANARY not in seen
    assert encoded not in seen
    assert detail(outcome)["answer"] == "you sent … and …"
    assert target.calls[0].path == f"/in?key={CANARY}"


@pytest.mark.parametrize(
    "step",
    [drop(), raw(f"HTTP/1.1 200 {CANARY}\r\n{CANARY}\r\n\r\n".encode()), raw(CANARY.encode())],
    ids=["drop", "bad head", "no head"],
)
def test_no_secret_is_seen_when_the_exchange_breaks(step, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    with FakeDestination(step) as target:
        to = destination(f"{target.url}?key={CANARY}", auth=LOGINS[0])
        outcome = deliver(to)
    gc.collect()
    assert outcome.kind is Kind.FAILED
    assert CANARY not in repr(outcome) + caplog.text + "".join(capsys.readouterr())
