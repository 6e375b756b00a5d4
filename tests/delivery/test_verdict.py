"""One test per row of the charge table: from an answer, or its absence, to the outcome."""

import msgspec
import pytest

from treppe.config import Destination
from treppe.delivery.verdict import Answer, NoAnswer, judge, not_sent
from treppe.job import Kind

CRM = Destination("crm", "https://crm.example/in?key=s3cret")
KEYED = msgspec.structs.replace(CRM, idempotency="Idempotency-Key")


def judged(status, destination=CRM, text="", **headers):
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return judge(Answer(status, CRM.url, pairs, text, ms=12), destination, now=0.0)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 207, 226, 299])
def test_2xx_is_done(status):
    outcome = judged(status)
    assert (outcome.kind, outcome.acted, outcome.error, outcome.handed_over) == (Kind.OK, True, "", False)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_3xx_is_a_moved_target(status):
    outcome = judged(status, Location="https://new.example/in?token=s3cret")
    assert (outcome.kind, outcome.acted) == (Kind.MOVED, False)
    assert outcome.error.startswith(f"target moved to https://new.example/in?token=… ({status}")


def test_a_moved_target_may_point_to_itself_or_nowhere():
    assert "https://crm.example/other (302 Found)" in judged(302, Location="/other").error
    assert judged(304).error == "target moved to an unknown place (304 Not Modified)"
    assert (
        "an unreadable address" in judged(302, Location="https://[::1").error
        or "…" in judged(302, Location="https://[::1").error
    )


@pytest.mark.parametrize("status", [401, 403])
def test_401_and_403_are_a_broken_login(status):
    assert (judged(status).kind, judged(status).acted) == (Kind.LOGIN, False)


@pytest.mark.parametrize("status", [404, 410])
def test_404_and_410_are_a_gone_target(status):
    assert (judged(status).kind, judged(status).acted) == (Kind.GONE, False)


@pytest.mark.parametrize(
    "status", [400, 402, 405, 406, 411, 412, 413, 414, 415, 418, 422, 423, 424, 426, 428, 431, 451, 499]
)
def test_other_4xx_refuse_the_data(status):
    assert (judged(status).kind, judged(status).acted) == (Kind.REFUSED, False)


@pytest.mark.parametrize("status", [408, 425])
def test_408_and_425_ask_for_the_same_again(status):
    assert (judged(status).kind, judged(status).acted) == (Kind.AGAIN, False)


def test_409_is_a_call_in_progress_only_where_an_idempotency_key_is_sent():
    assert (judged(409, KEYED).kind, judged(409, KEYED).acted) == (Kind.AGAIN, False)
    assert judged(409).kind is Kind.REFUSED


def test_407_is_trouble_on_the_way():
    assert (judged(407).kind, judged(407).acted) == (Kind.DOWN, False)


def test_429_throttles_with_or_without_a_wait():
    assert (judged(429).kind, judged(429).acted, judged(429).after) == (Kind.THROTTLED, False, None)
    assert judged(429, Retry_After="30").after == 30.0


def test_503_throttles_only_with_a_readable_wait():
    assert (judged(503, Retry_After="30").kind, judged(503, Retry_After="30").after) == (Kind.THROTTLED, 30.0)
    assert judged(503).kind is Kind.FAILED
    assert judged(503, Retry_After="soon").kind is Kind.FAILED


def test_a_failure_acted_or_not_unless_the_destination_says_it_did_not():
    assert judged(503).acted is False
    assert judged(500).acted is None
    told = msgspec.structs.replace(CRM, not_acted=(500,))
    assert (judged(500, told).acted, judged(503, told).acted) == (False, None)


@pytest.mark.parametrize("status", [500, 501, 502, 504, 505, 507, 520, 524, 599, 999, 101, 199])
def test_other_statuses_are_failures_that_may_have_acted(status):
    outcome = judged(status)
    assert (outcome.kind, outcome.acted) == (Kind.FAILED, None)


def test_nothing_left_is_a_target_that_is_down_and_did_not_act():
    outcome = judge(NoAnswer("no connection to crm.example (refused)", CRM.url, left=False), CRM, 0.0)
    assert (outcome.kind, outcome.acted, outcome.error) == (Kind.DOWN, False, "no connection to crm.example (refused)")


def test_something_left_and_no_answer_is_a_failure_nobody_knows_the_end_of():
    outcome = judge(NoAnswer("no answer from crm.example within 30 s", CRM.url, left=True), CRM, 0.0)
    assert (outcome.kind, outcome.acted) == (Kind.FAILED, None)
    assert outcome.error == "no answer from crm.example within 30 s; nobody knows whether it acted"


def test_a_setting_in_the_way_holds_the_queue_and_charges_nobody():
    outcome = not_sent("the url is not encrypted", CRM.url)
    assert (outcome.kind, outcome.acted, outcome.error) == (Kind.DOWN, False, "the url is not encrypted")


def test_the_detail_tells_people_what_came_back():
    outcome = judged(422, text="no such field", Content_Type="text/plain", Set_Cookie="s3cret", X_Anything="s3cret")
    assert msgspec.json.decode(outcome.detail) == {
        "status": 422,
        "ms": 12,
        "url": "https://crm.example/in?key=…",
        "headers": {"content-type": "text/plain"},
        "answer": "no such field",
    }


def test_the_detail_is_bounded():
    kept = msgspec.json.decode(judged(200, text="x" * 70_000, Server="y" * 9000).detail)
    assert (len(kept["answer"]), len(kept["headers"]["server"])) == (2000, 200)


def test_the_detail_of_silence_says_whether_anything_was_sent():
    outcome = judge(NoAnswer("no answer", CRM.url, left=True, ms=30000), CRM, 0.0)
    assert msgspec.json.decode(outcome.detail) == {"ms": 30000, "url": "https://crm.example/in?key=…", "sent": True}


@pytest.mark.parametrize("status", [*range(100, 600), 999])
def test_every_status_has_an_outcome_in_one_plain_sentence(status):
    for destination in (CRM, KEYED):
        outcome = judged(status, destination, Retry_After="5", Location="/x")
        assert "\n" not in outcome.error
        assert "s3cret" not in outcome.error
        assert (outcome.kind is Kind.OK) == (outcome.error == "")
