"""docs/delivery.md against the code: what every answer means, what it costs, and what is sent along."""

import re

import pytest

from tests.docs.pages import ROOT, code_spans, tables
from treppe.config import Destination
from treppe.delivery.request import HOP, MOST_HOPS, delivery
from treppe.delivery.verdict import Answer, NoAnswer, Reply, judge
from treppe.job import Claim, Event, Kind, Outcome, Repeat
from treppe.policy import charge
from treppe.policy.charge import Charging
from treppe.policy.pace.report import DIFFERENT, FAILURES, ROW
from treppe.settle import Rules, conclude

PAGE = (ROOT / "docs" / "delivery.md").read_text("utf-8")
ANSWERS = tables(PAGE)[1][1:]
URL = "https://crm.example/in"

ACTED = {"yes": True, "no": False, "maybe": None}
CHARGING = {
    "yes": Charging.ALWAYS,
    "no": Charging.NEVER,
    "by health": Charging.BY_HEALTH,
    "dead at once": Charging.NEVER,
}
SILENCE = {
    "no connection, no such name, TLS failure": NoAnswer("no connection", URL, left=False),
    "no answer in time": NoAnswer("no answer", URL, left=True),
}


def replies(cell: str) -> list[Reply]:
    """The answers that one cell of the table names."""
    found: list[Reply] = [reply for words, reply in SILENCE.items() if words in cell]
    headers = (("Retry-After", "30"),)
    for part in cell.split(";"):
        asked = headers if re.search("with `Retry-After`", part) else ()
        found += [Answer(int(code), URL, asked) for code in re.findall(r"\b[2-5]\d\d\b", part)]
    return [*found, *([Answer(int(re.findall(r"\b(\d)xx", cell)[0]) * 100 + 18, URL)] if "xx" in cell else [])]


def cases() -> list[tuple[str, Reply, list[str]]]:
    return [
        (f"{row[0][:20]} {getattr(reply, 'status', 'silent')}", reply, row)
        for row in ANSWERS
        for reply in replies(row[0])
    ]


def outcome(reply: Reply, cell: str) -> Outcome:
    knows_repeats = "Idempotency-Key" if "`idempotency`" in cell else None
    return judge(reply, Destination("crm", URL, idempotency=knows_repeats), now=0.0)


@pytest.mark.parametrize(("name", "reply", "row"), cases(), ids=[name for name, _, _ in cases()])
def test_every_answer_means_what_the_page_says(name, reply, row):
    cell, acted, charged, effect = row
    judged = outcome(reply, cell)
    table = charge.TABLE[judged.kind]
    assert (judged.acted if judged.kind is Kind.FAILED else table.acted) is ACTED[acted]
    assert table.charging is CHARGING[charged]
    assert (conclude(claim(), judged, Rules(), now=0.0, roll=0.5).event is Event.BURY) == (charged == "dead at once")
    assert all(word in effect for word in EFFECT_WORDS[table.effect.name]) or effect == "the same"


EFFECT_WORDS = {
    "OPENS": ["goes on", "openness up"],
    "THROTTLES": ["held until then", "a quarter down", "once per hold"],
    "SHUTS": [f"{FAILURES} failures of {DIFFERENT['down']} different jobs", "openness 0, probes"],
    "LOCKS_OUT": [f"{DIFFERENT['login']} different jobs", "login broken"],
    "LOSES": [f"{DIFFERENT['gone']} different jobs", "address not found"],
    "REFUSES": [f"{DIFFERENT['refused']} different jobs in a row", "refuses everything"],
    "TOLD": ["nothing", "the error names the new address"],
    "ANSWERS": ["nothing", "short wait"],
}


def test_every_kind_of_answer_is_in_the_table():
    kinds = {outcome(reply, row[0]).kind for _, reply, row in cases()}
    by_itself = {Kind.RELEASED, Kind.SNOOZED, Kind.CHARGED, Kind.UNCLEAR, Kind.LAPSED, Kind.EXPIRED, Kind.ACT}
    assert kinds == set(Kind) - by_itself


def test_the_figures_are_those_of_the_policies():
    assert f"{ROW} in a row" in PAGE
    assert f"at least {charge.PROVING} other jobs" in PAGE
    assert f"after {charge.MAX_UNCHARGED} tries without a charge" in PAGE
    assert f"more than {MOST_HOPS} times" in PAGE


def test_every_header_that_is_sent_is_in_the_table():
    sent = {name for name, _ in delivery(claim(), Destination("crm", URL), open_secret=lambda _: b"").headers}
    told = set(code_spans(" ".join(row[0] for row in tables(PAGE)[0])))
    assert {name for name in sent if name.startswith("Treppe-")} == {
        name for name in told if name.startswith("Treppe-")
    }
    assert HOP in told


def claim() -> Claim:
    return Claim(
        1, "shop:42:crm", 1, 7, "destination:crm", "crm", b"{}", "application/json", None, Repeat.SAFE, claims=1,
        charged=0, attempts=5, crashes=0, due_at=0.0, claimed_at=0.0, expires_at=1e6, deadline_at=None,
        event=("shop", "42"), topic="orders/paid",
    )  # fmt: skip
