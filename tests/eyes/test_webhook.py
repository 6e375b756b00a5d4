"""Webhooks over real sockets, signed by Standard Webhooks, and only to where we may send."""

import base64
import hashlib
import hmac
import json
import time

import pytest

from treppe.config import Alert, Secret
from treppe.errors import ConfigError
from treppe.eyes.episode import Message
from treppe.eyes.webhook import post
from treppe.testing.destination import FakeDestination, answer, drip, drop, hang, moved

MESSAGE = Message("msg_1", "first", "Treppe: 2 jobs", "text ß\n", {"rule": "dead", "total": 2})
KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "plain:whsec_" + base64.b64encode(KEY).decode()


def alert(**fields):
    return Alert(
        "me", (), **{"allow_http": True, "allow_networks": ("127.0.0.0/8",), "secret": Secret(SECRET)} | fields
    )


def test_a_webhook_carries_text_and_facts_under_a_signature():
    with FakeDestination() as chat:
        post(alert(), f"{chat.url}hook?k=1", MESSAGE, 1_700_000_000.9)
        [call] = chat.calls
    assert (call.method, call.path) == ("POST", "/hook?k=1")
    assert json.loads(call.body) == {
        "type": "treppe.alert",
        "timestamp": "2023-11-14T22:13:20+00:00",
        "data": {"subject": "Treppe: 2 jobs", "text": "text ß\n", "rule": "dead", "total": 2},
    }
    assert (call.header("webhook-id"), call.header("webhook-timestamp")) == ("msg_1", "1700000000")
    expected = hmac.digest(KEY, b"msg_1.1700000000." + call.body, hashlib.sha256)
    assert call.header("webhook-signature") == "v1," + base64.b64encode(expected).decode()
    assert call.header("content-type") == "application/json"


def test_a_secret_without_the_prefix_is_taken_as_it_is():
    with FakeDestination() as chat:
        post(alert(secret=Secret("plain:hush")), chat.url, MESSAGE, 1.0)
        [call] = chat.calls
    expected = hmac.digest(b"hush", b"msg_1.1." + call.body, hashlib.sha256)
    assert call.header("webhook-signature") == "v1," + base64.b64encode(expected).decode()


def test_without_a_secret_there_is_no_signature():
    with FakeDestination() as chat:
        post(alert(secret=None), chat.url, MESSAGE, 1.0)
        assert chat.calls[0].header("webhook-signature") is None


@pytest.mark.parametrize("status", [200, 204, 299])
def test_any_2xx_is_an_arrival(status):
    with FakeDestination(answer(status)) as chat:
        post(alert(), chat.url, MESSAGE, 1.0)


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_anything_else_is_not(status):
    with FakeDestination(answer(status)) as chat, pytest.raises(OSError, match=f"answered {status}"):
        post(alert(), chat.url, MESSAGE, 1.0)


def test_a_redirect_is_not_followed():
    with FakeDestination() as elsewhere, FakeDestination(moved(elsewhere.url)) as chat:
        with pytest.raises(OSError, match="answered 302"):
            post(alert(), chat.url, MESSAGE, 1.0)
        assert elsewhere.calls == ()


def test_a_slow_body_does_not_keep_it_waiting():
    with FakeDestination(drip(200)) as chat:
        started = time.monotonic()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("treppe.eyes.webhook.LIMIT", 0.5)
            post(alert(), chat.url, MESSAGE, 1.0)
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(("step", "why"), [(hang(), "no answer"), (drop(), "broke")], ids=["hang", "drop"])
def test_no_answer_is_no_arrival(step, why, monkeypatch):
    monkeypatch.setattr("treppe.eyes.webhook.LIMIT", 0.3)
    with FakeDestination(step) as chat, pytest.raises(OSError, match=why):
        post(alert(), chat.url, MESSAGE, 1.0)


@pytest.mark.parametrize(
    ("fields", "url", "why"),
    [
        ({"allow_networks": ()}, "http://127.0.0.1:{port}/", "not public"),
        ({"allow_http": False}, "http://127.0.0.1:{port}/", "not encrypted"),
        ({"allow_networks": ("10.0.0.0/8",)}, "http://localhost:{port}/", "not public"),
        ({}, "http://me:pw@127.0.0.1:{port}/", "user name"),
    ],
)
def test_where_a_destination_may_not_send_an_alert_may_not_either(fields, url, why):
    with FakeDestination() as chat:
        with pytest.raises(OSError, match=why):
            post(alert(**fields), url.format(port=chat.port), MESSAGE, 1.0)
        assert chat.calls == ()


def test_a_broken_secret_says_what_to_do():
    with pytest.raises(ConfigError, match="Copy it once more"):
        post(alert(secret=Secret("plain:whsec_!")), "http://127.0.0.1:1/", MESSAGE, 1.0)
