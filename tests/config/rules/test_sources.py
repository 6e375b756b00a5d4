from typing import Any

import pytest

from treppe.config import Secret, Settings, Source, Verify
from treppe.config.rules import sources

HUSH = (Secret("env:HUSH"),)
SIGNED = Verify("X-Signature")


def told(**fields: Any) -> list[tuple[str, str]]:
    source = Source("s", **({"secrets": HUSH, "verify": SIGNED, "send_to": ("d",), "id": ("header:X-Id",)} | fields))
    return [(finding.level, str(finding)) for finding in sources.findings(Settings(sources={"s": source}))]


def test_a_source_that_checks_and_sends_on_is_fine() -> None:
    assert told() == []
    assert told(preset="shopify", verify=None, id=()) == []
    assert told(verify=Verify("X", signed="{id}.{body}", id_header="X-Id"), id=()) == []


@pytest.mark.parametrize(
    ("fields", "level", "sentence"),
    [
        ({"verify": "none", "secrets": ()}, "warning", "source.s.verify: anybody who knows the address can send here"),
        ({"verify": None}, "error", "source.s.verify: nothing says how this sender signs. Add verify = {"),
        ({"secrets": ()}, "error", "source.s.secret: no signature can be checked without a secret. Add secret"),
        ({"send_to": ()}, "warning", "source.s.send_to: what comes in here is kept, and sent nowhere"),
        (
            {"keep": 3600.0},
            "warning",
            "source.s.keep: the sender may repeat a webhook for 3d, and ids are kept for less",
        ),
        ({"verify": Verify("X", signed="{id}.{body}")}, "error", "{id} is signed, but nothing says which header"),
        ({"verify": Verify("X", signed="{timestamp}{body}")}, "error", 'Add timestamp_header = "…"'),
        (
            {"verify": Verify("X", timestamp_header="T")},
            "error",
            "the timestamp is not signed, so anybody can change it",
        ),
        (
            {"verify": Verify("X", signed="{url}{body}")},
            "error",
            "signed names {url}. Known are {body}, {timestamp} and {id}",
        ),
    ],
)
def test_each_weakness_of_a_source_has_its_sentence(fields: dict[str, Any], level: str, sentence: str) -> None:
    ((found, text),) = told(**fields)
    assert found == level
    assert sentence in text


def test_a_sender_that_soon_gives_up_needs_a_shorter_memory() -> None:
    assert told(preset="shopify", verify=None, keep=4 * 3600.0) == []
    assert len(told(preset="standard-webhooks", verify=None, keep=4 * 3600.0)) == 1
