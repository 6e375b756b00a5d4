"""A test per row of the charge table, for what it says about the budget; the queue's part is in pace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.job import Kind
from treppe.policy.charge import MAX_UNCHARGED, TABLE, Charging, Effect, is_charged, next_seen, used_up

FIRST = None
SEEN = (100, 150, 1000.0)
HEALTHY = (103, 153)

NEVER = {
    Kind.OK, Kind.RELEASED, Kind.SNOOZED, Kind.AGAIN, Kind.THROTTLED, Kind.DOWN, Kind.LOGIN, Kind.REFUSED,
    Kind.UNCLEAR, Kind.LAPSED, Kind.EXPIRED, Kind.ACT,
}  # fmt: skip
ALWAYS = {Kind.CHARGED, Kind.GONE, Kind.MOVED}


def failed(seen, health, now=1000.0):
    return is_charged(Kind.FAILED, seen, health, now)


def test_every_kind_has_a_row():
    assert set(TABLE) == set(Kind)
    assert NEVER | ALWAYS | {Kind.FAILED} == set(Kind)


@pytest.mark.parametrize("kind", sorted(NEVER))
@pytest.mark.parametrize("now", [1000.0, 1e9])
def test_what_is_nobodys_fault_is_never_charged(kind, now):
    assert not is_charged(kind, SEEN, HEALTHY, now)


@pytest.mark.parametrize("kind", sorted(ALWAYS))
@pytest.mark.parametrize(("seen", "health"), [(FIRST, None), (SEEN, (100, 400))])
def test_what_is_the_jobs_own_fault_is_charged_from_the_first_time(kind, seen, health):
    assert is_charged(kind, seen, health, 1000.0)


def test_a_first_failure_is_never_charged():
    assert not failed(FIRST, None, now=1e9)
    assert not failed(FIRST, HEALTHY, now=1e9)


@pytest.mark.parametrize(
    ("ok", "tried", "charged"),
    [
        (0, 0, False),
        (2, 2, False),
        (3, 3, True),
        (3, 4, False),
        (4, 5, True),
        (7, 9, False),
        (8, 10, True),
        (0, 9, False),
    ],
)
def test_three_others_that_are_four_of_five_prove_the_target_healthy(ok, tried, charged):
    assert failed(SEEN, (100 + ok, 150 + tried)) is charged


@pytest.mark.parametrize(
    ("ok", "tried", "charged"), [(0, 0, True), (1, 1, True), (2, 2, True), (0, 1, False), (1, 2, False)]
)
def test_after_an_hour_fewer_or_none_will_do_if_nobody_else_had_trouble(ok, tried, charged):
    assert failed(SEEN, (100 + ok, 150 + tried), now=1000.0 + 3600.0) is charged
    assert not failed(SEEN, (100 + ok, 150 + tried), now=1000.0 + 3599.9)


def test_counters_that_were_reset_or_a_clock_that_stepped_back_prove_nothing():
    assert not failed(SEEN, (3, 3), now=1e9)
    assert not failed(SEEN, (100, 150), now=0.0)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.CHARGED])
def test_a_probe_is_not_charged_for_what_it_meets(kind):
    assert not is_charged(kind, SEEN, HEALTHY, 1e9, probe=True)


def test_a_probe_is_charged_when_its_handler_says_so():
    assert is_charged(Kind.CHARGED, FIRST, None, 0.0, probe=True)


def test_only_success_failure_and_outage_are_evidence_for_others():
    assert {kind for kind, row in TABLE.items() if row.counts} == {Kind.OK, Kind.FAILED, Kind.DOWN}


def test_only_a_failure_a_shutdown_or_a_word_of_doubt_leaves_open_whether_it_acted():
    assert {kind for kind, row in TABLE.items() if row.acted is None} == {
        Kind.FAILED, Kind.RELEASED, Kind.UNCLEAR, Kind.LAPSED, Kind.ACT
    }  # fmt: skip


def test_the_words_of_the_table_are_words_for_people():
    assert all(" " in word or word in {"never", "always", "nothing"} for word in (*Charging, *Effect))


def test_the_first_failure_remembers_the_counters_as_they_are():
    assert next_seen(None, (10, 21), charged=False, now=50.0) == (10, 21, 50.0)


def test_the_hour_of_a_lone_job_goes_on_over_its_own_tries():
    seen = next_seen(None, (10, 21), charged=False, now=0.0)
    for own_tries in range(1, 10):
        now = own_tries * 360.0
        assert not failed(seen, (10, 20 + own_tries), now)
        seen = next_seen(seen, (10, 21 + own_tries), charged=False, now=now)
    assert failed(seen, (10, 30), now=3600.0)
    seen = next_seen(seen, (10, 31), charged=True, now=3600.0)
    assert seen == (10, 31, 3600.0)
    assert not failed(seen, (10, 31), now=7199.0)
    assert failed(seen, (10, 31), now=7200.0)


def test_the_hour_begins_anew_when_somebody_else_tried():
    assert next_seen((10, 21, 50.0), (10, 23), charged=False, now=90.0) == (10, 23, 90.0)


@given(st.tuples(st.integers(0, 50), st.integers(0, 50)), st.integers(0, 20), st.integers(0, 20), st.booleans())
def test_a_jobs_own_tries_are_never_evidence_against_it(before, others_ok, others_failed, charged):
    ok, tried = before[0], before[0] + before[1] + 1
    seen = next_seen(None, (ok, tried), charged=charged, now=0.0)
    health = (ok + others_ok, tried + others_ok + others_failed)
    enough = others_ok >= 3 and others_ok * 5 >= (others_ok + others_failed) * 4
    assert failed(seen, health, now=1.0) is enough


@pytest.mark.parametrize(("charged", "reason"), [(3, ""), (4, "5 of 5 attempts"), (6, "7 of 5 attempts")])
def test_charged_attempts_are_bounded(charged, reason):
    assert used_up(charged, attempts=5, claims=charged + 1, charging=True) == reason


@pytest.mark.parametrize(("uncharged", "reason"), [(499, ""), (500, "500 tries without a charge")])
def test_tries_without_a_charge_are_bounded(uncharged, reason):
    assert used_up(charged=3, attempts=5, claims=3 + uncharged, charging=False) == reason


def test_probes_do_not_count_as_tries():
    assert used_up(charged=0, attempts=5, claims=MAX_UNCHARGED + 7, charging=False, probe=True) == ""
