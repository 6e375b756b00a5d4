"""The pure step: from a claim and an outcome to what is written. A test per row of the charge table, and per bound."""

import json
from itertools import product

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treppe.config import DAY, Backoff
from treppe.job import Claim, Event, Kind, Outcome, Repeat, State, When, advance
from treppe.policy.charge import TABLE
from treppe.policy.retry import LONGEST_ASKED
from treppe.settle import AFTER_LAPSE, MAX_RESULT, Rules, conclude
from treppe.store.protocol import Lapse, Lapsed
from treppe.store.text import MAX_ERROR, clean

NOW = 1_700_000_000.0
UNSAFE = [Repeat.LOOK, Repeat.ASK]
HEALTHY = {"seen": (10, 20, NOW - 60), "health": (13, 23)}
ENDS_OTHERWISE = {Kind.OK, Kind.UNCLEAR, Kind.REFUSED, Kind.EXPIRED}
PUTS_BACK = [kind for kind in Kind if kind not in ENDS_OTHERWISE]


def claim(**changes) -> Claim:
    plain = Claim(
        seq=7, id="invoice:42", token=1, worker=3, task="destination:crm", queue="crm", payload=b"", content_type="",
        key=None, repeat=Repeat.SAFE, claims=1, charged=0, attempts=5, crashes=0, due_at=NOW - 5, claimed_at=NOW - 1,
        expires_at=NOW + 14 * DAY, deadline_at=None,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


DEFAULT = Rules()
FIRST = claim()


def settled(kind, rules=DEFAULT, now=NOW, roll=0.0, claim=FIRST, **outcome):
    return conclude(claim, Outcome(kind, **outcome), rules, now, roll)


# How it ends


def test_success_finishes_with_its_result():
    s = settled(Kind.OK, result=b"17", detail=b'{"status":201}')
    assert (s.event, s.kind, s.result, s.detail, s.error) == (Event.FINISH, Kind.OK, b"17", b'{"status":201}', "")
    assert (s.charged, s.counts) == (False, True)


def test_what_was_handed_over_waits_for_its_confirmation():
    s = settled(Kind.OK, Rules(confirm_within=3600.0), handed_over=True)
    assert (s.event, s.confirm_within) == (Event.HAND_OVER, 3600.0)


def test_refused_data_is_dead_at_once_and_not_charged():
    s = settled(Kind.REFUSED, error="422: the tax number is none")
    assert (s.event, s.charged, s.error) == (Event.BURY, False, "422: the tax number is none")


def test_a_probe_that_is_refused_is_put_back_and_not_buried():
    s = settled(Kind.REFUSED, claim=claim(probe=True, claims=0))
    assert (s.event, s.charged) == (Event.DEFER, False)


@pytest.mark.parametrize("repeat", Repeat)
def test_a_handlers_own_doubt_is_taken_at_its_word(repeat):
    assert settled(Kind.UNCLEAR, claim=claim(repeat=repeat)).event is Event.DOUBT


def test_a_job_that_was_found_expired_is_dead():
    assert settled(Kind.EXPIRED, error="expired").event is Event.BURY


@pytest.mark.parametrize("kind", PUTS_BACK)
def test_everything_else_goes_back_when_it_may_be_repeated(kind):
    assert settled(kind).event is Event.DEFER


@pytest.mark.parametrize(("kind", "repeat"), list(product(PUTS_BACK, UNSAFE)))
def test_what_must_not_be_repeated_goes_back_only_when_nothing_can_have_happened(kind, repeat):
    expected = Event.DEFER if TABLE[kind].acted is False else Event.DOUBT
    assert settled(kind, claim=claim(repeat=repeat)).event is expected
    assert settled(kind, claim=claim(repeat=repeat), acted=False).event is Event.DEFER


@pytest.mark.parametrize("repeat", UNSAFE)
def test_a_failure_that_did_act_is_a_doubt_too(repeat):
    assert settled(Kind.FAILED, claim=claim(repeat=repeat), acted=True).event is Event.DOUBT


def test_a_doubt_is_not_charged_but_teaches_the_queue_and_the_others():
    s = settled(Kind.FAILED, claim=claim(repeat=Repeat.ASK, **HEALTHY))
    assert (s.event, s.charged, s.counts, s.report.kind) == (Event.DOUBT, False, True, Kind.FAILED)


def test_a_shutdown_before_the_handler_started_is_no_doubt():
    unsafe = claim(repeat=Repeat.ASK)
    assert settled(Kind.RELEASED, claim=unsafe, acted=False).event is Event.DEFER
    assert settled(Kind.RELEASED, claim=unsafe).event is Event.DOUBT


@pytest.mark.parametrize("kind", [Kind.DOWN, Kind.THROTTLED, Kind.FAILED, Kind.LOGIN, Kind.REFUSED, Kind.RELEASED])
def test_who_only_looked_and_got_no_answer_knows_no_more_than_before(kind):
    looking = claim(repeat=Repeat.LOOK, looking=True)
    assert settled(kind, claim=looking, acted=False).event is Event.DOUBT
    assert settled(Kind.OK, claim=looking).event is Event.FINISH


# The budgets


def test_a_first_failure_is_not_charged():
    assert not settled(Kind.FAILED, claim=claim()).charged


def test_a_failure_on_a_target_that_others_prove_healthy_is_charged():
    s = settled(Kind.FAILED, claim=claim(**HEALTHY))
    assert (s.event, s.charged) == (Event.DEFER, True)


def test_the_last_charge_buries_and_names_the_budget():
    s = settled(Kind.FAILED, claim=claim(charged=2, attempts=3, claims=9, **HEALTHY), error="500: out of paper")
    assert (s.event, s.kind, s.charged) == (Event.BURY, Kind.FAILED, True)
    assert s.error == "3 of 3 attempts: 500: out of paper"
    assert settled(Kind.CHARGED, claim=claim(attempts=1)).error == "1 of 1 attempts"


def test_what_is_not_charged_does_not_bury_although_the_budget_is_small():
    assert settled(Kind.DOWN, claim=claim(charged=4, attempts=5, claims=60)).event is Event.DEFER


@pytest.mark.parametrize(("claims", "event"), [(499, Event.DEFER), (500, Event.BURY)])
def test_five_hundred_tries_without_a_charge_bury(claims, event):
    s = settled(Kind.AGAIN, claim=claim(claims=claims), error="409")
    assert s.event is event
    assert s.error == ("409" if event is Event.DEFER else "500 tries without a charge: 409")


def test_probes_never_use_up_a_budget():
    worn = claim(claims=700, charged=4, attempts=5, probe=True, **HEALTHY)
    assert all(settled(kind, claim=worn).event is Event.DEFER for kind in PUTS_BACK if kind is not Kind.CHARGED)


@pytest.mark.parametrize("kind", PUTS_BACK)
def test_after_its_expiry_a_job_is_dead_instead_of_put_back(kind):
    s = settled(kind, claim=claim(expires_at=NOW), error="500")
    assert (s.event, s.kind, s.error) == (Event.BURY, Kind.EXPIRED, "expired: 500")
    assert s.report is None or s.report.kind is kind


@pytest.mark.parametrize("kind", [Kind.OK, Kind.UNCLEAR])
def test_expiry_does_not_undo_what_was_done_or_may_have_been(kind):
    assert settled(kind, claim=claim(expires_at=NOW - 1)).event is not Event.BURY


# The wait


def test_a_failure_waits_by_the_rule_of_its_task():
    rules = Rules(Backoff(base=0.5, factor=2.0, jitter=False))
    waits = [settled(Kind.FAILED, rules, claim=claim(claims=n)).delay for n in (1, 2, 3)]
    assert waits == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("kind", [Kind.FAILED, Kind.THROTTLED, Kind.AGAIN, Kind.GONE, Kind.DOWN])
def test_nothing_comes_back_before_the_retry_after(kind):
    s = settled(kind, claim=claim(claims=3), after=900.0)
    assert s.delay == 900.0
    assert s.report.after == 900.0


@pytest.mark.parametrize("kind", [Kind.SNOOZED, Kind.CHARGED])
def test_a_handlers_own_wish_is_kept_to_the_second(kind):
    assert settled(kind, roll=0.9, after=3 * DAY).delay == 3 * DAY
    assert settled(kind, roll=0.9, after=0.0).delay == 0.0


def test_a_job_that_is_given_back_may_go_on_at_once():
    assert settled(Kind.RELEASED, claim=claim(claims=9), roll=0.9).delay == 0.0


@pytest.mark.parametrize("kind", [Kind.AGAIN, Kind.THROTTLED])
def test_what_the_queue_waits_for_keeps_the_job_away_for_a_moment_only(kind):
    waits = [settled(kind, claim=claim(claims=n), roll=0.999).delay for n in (1, 2, 9)]
    assert waits == pytest.approx([5, 10, 300], rel=0.01)


def test_a_probe_is_soon_ready_for_the_next_one():
    assert settled(Kind.FAILED, claim=claim(claims=9, probe=True), roll=0.999).delay < 5.0


# What the queue learns


@pytest.mark.parametrize(
    "kind", [Kind.THROTTLED, Kind.DOWN, Kind.FAILED, Kind.LOGIN, Kind.GONE, Kind.REFUSED, Kind.MOVED, Kind.AGAIN]
)
def test_the_queue_learns_what_the_target_did_and_to_which_job(kind):
    report = settled(kind, after=3.0).report
    assert (report.kind, report.job, report.after, report.probe, report.n) == (kind, 7, 3.0, False, 1)


def test_the_queue_learns_of_a_success():
    assert (settled(Kind.OK).report.kind, settled(Kind.OK).report.n) == (Kind.OK, 1)


@pytest.mark.parametrize("kind", [Kind.RELEASED, Kind.SNOOZED, Kind.CHARGED, Kind.UNCLEAR, Kind.EXPIRED])
def test_the_queue_learns_nothing_from_what_is_not_about_the_target(kind):
    assert settled(kind).report is None


@pytest.mark.parametrize("kind", Kind)
def test_the_queue_learns_how_its_probe_ended_in_any_case(kind):
    report = settled(kind, claim=claim(probe=True, claims=0)).report
    assert (report.kind, report.job, report.probe) == (kind, 7, True)


# What is written


def test_error_texts_are_made_fit_for_every_store():
    assert settled(Kind.FAILED, error="a\0b\ud800c").error == "a\ufffdb\ufffdc"
    assert clean("pair \ud83d\ude00") == "pair \U0001f600"
    assert clean(b"caf\xe9 \x00") == "caf\ufffd \ufffd"
    assert clean("ends in half a pair \ud83d") == "ends in half a pair \ufffd"


@given(st.text(st.characters(exclude_categories=()), max_size=50) | st.binary(max_size=50), st.integers(1, 60))
@example("\ud800" * 20, 7)
@example(b"\xf0\x9f\x98" * 20, 7)
def test_clean_text_is_utf_8_without_nul_and_short(text, limit):
    cleaned = clean(text, limit)
    assert "\0" not in cleaned.encode("utf-8").decode("utf-8")
    assert len(cleaned) <= limit


def test_an_endless_error_is_cut_also_when_a_budget_is_named_in_front_of_it():
    s = settled(Kind.CHARGED, claim=claim(attempts=1), error="x" * 10**6)
    assert len(s.error) == MAX_ERROR
    assert s.error.startswith("1 of 1 attempts: xxx")
    assert s.error.endswith("x…")
    assert len(clean(b"\xff" * 10**6)) == MAX_ERROR


def test_a_result_that_is_too_large_is_left_out_with_a_note_and_the_job_is_done_all_the_same():
    s = settled(Kind.OK, result=b"x" * (MAX_RESULT + 1), detail=b'{"status":200}')
    assert (s.event, s.result) == (Event.FINISH, None)
    assert json.loads(s.detail) == {
        "status": 200,
        "note": "the result of 65537 bytes was not kept; the limit is 65536",
    }
    assert settled(Kind.OK, result=b"x" * MAX_RESULT).result == b"x" * MAX_RESULT


@pytest.mark.parametrize("detail", [None, b"", b"not json", b"[1]", b"\xff", b"x" * (MAX_RESULT + 1)])
def test_the_note_is_written_whatever_the_detail_is(detail):
    s = settled(Kind.OK, result=b"x" * (MAX_RESULT + 1), detail=detail)
    assert "result of 65537 bytes" in json.loads(s.detail)["note"]


def test_a_detail_that_is_too_large_is_replaced_by_a_note():
    s = settled(Kind.FAILED, detail=b'{"body":"' + b"x" * MAX_RESULT + b'"}')
    assert "detail of 65547 bytes" in json.loads(s.detail)["note"]


# Lapses


@pytest.mark.parametrize(
    ("facts", "event", "crashed"),
    [
        (Lapsed(Repeat.SAFE, False, False, 0, 3), Event.LAPSE, False),
        (Lapsed(Repeat.SAFE, True, False, 0, 3), Event.LAPSE, True),
        (Lapsed(Repeat.SAFE, True, False, 2, 3), Event.BURY, True),
        (Lapsed(Repeat.SAFE, False, True, 0, 3), Event.CANCEL, False),
        (Lapsed(Repeat.ASK, False, False, 0, 3), Event.DOUBT, False),
        (Lapsed(Repeat.ASK, False, True, 0, 3), Event.DOUBT, False),
        (Lapsed(Repeat.LOOK, True, False, 2, 3, looking=True), Event.DOUBT, True),
    ],
)
def test_a_lapse_is_decided_in_the_stores_words(facts, event, crashed):
    decided = AFTER_LAPSE(facts)
    assert isinstance(decided, Lapse)
    assert (decided.event, decided.crashed) == (event, crashed)
    assert decided.error


# Properties

CLAIMS = st.builds(
    claim,
    repeat=st.sampled_from(Repeat), claims=st.integers(0, 600), charged=st.integers(0, 9), attempts=st.integers(1, 9),
    probe=st.booleans(), looking=st.booleans(), expires_at=st.floats(NOW - 100, NOW + 100),
    seen=st.none() | st.just((10, 20, NOW - 7200)), health=st.none() | st.just((13, 23)),
)  # fmt: skip
OUTCOMES = st.builds(
    Outcome,
    kind=st.sampled_from(Kind), error=st.text(max_size=20), after=st.none() | st.floats(),
    acted=st.sampled_from([None, False, True]), handed_over=st.booleans(),
)  # fmt: skip


@given(CLAIMS, OUTCOMES, st.floats(0, 1, exclude_max=True))
def test_whatever_happens_the_settlement_is_one_that_a_store_can_write(claim, outcome, roll):
    s = conclude(claim, outcome, Rules(), NOW, roll)
    advance(State.RUNNING, s.event, When.ALWAYS)
    assert s.claim is claim
    assert 0.0 <= s.delay <= 3650 * DAY
    assert s == conclude(claim, outcome, Rules(), NOW, roll)
    if s.event is Event.DEFER:
        assert claim.expires_at > NOW
        assert not s.charged or claim.charged + 1 < claim.attempts
        if outcome.after is not None and 0 <= outcome.after <= LONGEST_ASKED and outcome.kind is not Kind.RELEASED:
            assert s.delay >= outcome.after


@given(CLAIMS, OUTCOMES, st.floats(0, 1, exclude_max=True))
def test_a_job_that_must_not_be_repeated_is_put_back_only_if_surely_nothing_happened(claim, outcome, roll):
    s = conclude(claim, outcome, Rules(), NOW, roll)
    if s.event is Event.DEFER and claim.repeat is not Repeat.SAFE:
        assert outcome.acted is False or (outcome.acted is None and TABLE[outcome.kind].acted is False)
