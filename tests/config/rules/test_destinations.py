from typing import Any

import pytest

from treppe.config import Backoff, Destination, Probe, Queue, Rate, Secret, Settings, Source, Web
from treppe.config.rules import destinations

OPEN = {"s": Source("s", send_to=("d",))}


def told(settings: Settings) -> list[tuple[str, str]]:
    return [(finding.level, str(finding)) for finding in destinations.findings(settings)]


def about(**fields: Any) -> list[tuple[str, str]]:
    destination = Destination("d", **({"url": "https://d.example/in", "idempotency": "Idempotency-Key"} | fields))
    return told(Settings(sources=OPEN, destinations={"d": destination}))


def test_a_plain_destination_is_fine() -> None:
    assert about() == []


@pytest.mark.parametrize(
    ("fields", "level", "sentence"),
    [
        ({"url": "api.example.com/in"}, "error", 'destination.d.url: "api.example.com/in" is not a web address'),
        ({"url": "ftp://d.example"}, "error", "is not a web address. Write a whole one"),
        ({"url": "https://d.example:99999"}, "error", "is not a web address"),
        ({"url": "https://[::1"}, "error", "is not a web address"),
        ({"url": "http://d.example"}, "error", "Use https, or add allow_http = true"),
        ({"url": "https://me:hunter2@d.example"}, "error", 'Write auth = { kind = "basic", … }'),
        ({"url": "https://127.0.0.1:8000/x"}, "error", 'If that is meant, add allow_networks = ["127.0.0.0/8"]'),
        ({"url": "https://localhost/x"}, "error", 'add allow_networks = ["127.0.0.0/8"]'),
        ({"url": "https://10.1.2.3/x"}, "error", 'add allow_networks = ["10.1.2.3/32"]'),
        ({"url": "https://[::1]/x"}, "error", 'add allow_networks = ["::1/128"]'),
        ({"url": "https://10.1.2.3/x", "allow_networks": ("10.2.0.0/16",)}, "error", "is an address inside"),
        ({"probe": Probe("http://d.example/up")}, "error", "destination.d.probe: http sends everything readable"),
        ({"allow_networks": ("10.0.0.1/8",)}, "error", '"10.0.0.1/8" is not a network'),
        ({"allow_networks": ("0.0.0.0/0",)}, "warning", "0.0.0.0/0 allows every address, also those inside"),
        ({"idempotency": None}, "hint", "nobody knows whether it acted: such jobs become unclear, and a human decides"),
        ({"idempotency": None, "repeat": "safe"}, "hint", "a POST may be sent twice after a time-out"),
        (
            {"timeout": 60.0, "expires": 60.0, "attempts": 1},
            "error",
            "destination.d.expires: one slow call takes longer than this",
        ),
        ({"timeout": 60.0, "deadline": 60.0}, "warning", "destination.d.deadline: one slow call breaks this promise"),
        ({"deadline": 15 * 86400.0}, "warning", "jobs are given up before they can be late. Choose less than expires"),
        ({"expires": 3600.0, "attempts": 9}, "warning", "the waits between 9 attempts add up to as much as"),
    ],
)
def test_each_weakness_of_a_destination_has_its_sentence(fields: dict[str, Any], level: str, sentence: str) -> None:
    ((found, text),) = about(**fields)
    assert found == level
    assert sentence in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "fields",
    [
        {"idempotency": None, "repeat": "ask"},
        {"idempotency": None, "repeat": "safe", "method": "PUT"},
        {"url": "http://127.0.0.1:1/x", "allow_http": True, "allow_networks": ("127.0.0.0/8",)},
        {"url": "https://api.localhost/x", "allow_networks": ("127.0.0.0/8",)},
        {"attempts": 3, "backoff": Backoff(1.0, 2.0, 1.5), "expires": 60.0, "timeout": 1.0},
        {"deadline": 900.0},
    ],
)
def test_what_was_said_on_purpose_is_fine(fields: dict[str, Any]) -> None:
    assert about(**fields) == []


def test_a_call_longer_than_a_drain_is_told_where_there_is_a_drain() -> None:
    slow = {"d": Destination("d", "https://d.example", idempotency="Idempotency-Key", timeout=60.0)}
    assert told(Settings(sources=OPEN, destinations=slow)) == []
    ((level, text),) = told(Settings(sources=OPEN, destinations=slow, web=Web(drain_secrets=(Secret("env:X"),))))
    assert level == "hint"
    assert "a drain of 50s never starts a call that may take 1m" in text


def test_what_nothing_leads_to_is_told_unless_python_may_use_it() -> None:
    alone = Settings(
        queues={"q": Queue("q"), "shop:*": Queue("shop:*")},
        destinations={"d": Destination("d", "https://d.example", repeat="ask")},
    )
    assert told(alone) == [
        ("warning", 'destination.d: no source sends here. Add "d" to the send_to of a source'),
        ("warning", 'queue.q: no destination uses it. Add queue = "q" to a destination'),
    ]
    assert told(Settings(app="shop:app", queues=alone.queues, destinations=alone.destinations)) == []


def test_the_lasting_pace_of_a_burst_is_told() -> None:
    settings = Settings(
        app="shop:app", queues={"q": Queue("q", Rate(100, 60.0), burst=10), "r": Queue("r", Rate(2, 1.0))}
    )
    assert told(settings) == [
        ("hint", "queue.q.burst: bursts of 10 leave a lasting pace of 91 per 1m, so that 100/m is never exceeded")
    ]


def test_one_api_behind_two_paces_is_told() -> None:
    targets = {name: Destination(name, f"https://api.example/{name}", repeat="ask") for name in ("a", "b")}
    both = {"s": Source("s", send_to=("a", "b"))}
    assert told(Settings(sources=both, destinations=targets)) == []
    ((level, text),) = told(Settings(sources=both, destinations=targets, queues={"a": Queue("a", Rate(2, 1.0))}))
    assert level == "hint"
    assert "api.example is called from several queues (a, b), each with a pace of its own" in text
