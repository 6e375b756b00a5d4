"""The table's last column: what each kind of ending does to its queue."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.job import Kind, Report
from treppe.policy.charge import TABLE, Effect
from treppe.policy.pace import Flow, Why, decode, encode, openness
from treppe.policy.pace.flow import REST
from treppe.policy.pace.report import fold

T = 1_700_000_000.0

REPORT = st.builds(
    Report,
    kind=st.sampled_from(Kind),
    job=st.integers(1, 7),
    at=st.integers(0, 7200).map(lambda seconds: T + seconds),
    after=st.none() | st.floats(0, 1e6),
    n=st.integers(1, 40),
    probe=st.booleans(),
)
REPORTS = st.lists(REPORT, max_size=30)


def told(flow, *kinds, at=T, jobs=None, after=None, probe=False):
    """Fold one report per kind, each of another job unless *jobs* are given."""
    reports = [Report(kind, jobs[i] if jobs else i + 1, at, after, probe=probe) for i, kind in enumerate(kinds)]
    return fold(flow, reports, "crm", at)


def ready(why, **more):
    """A queue held for *why*, whose probe is out."""
    return Flow(held=why, since=T - 60, until=T - 1, probing=T + 30, **more)


def succeed(flow, n, at=T):
    return fold(flow, [Report(Kind.OK, 0, at, n=n)], "crm", at)


# Throttling


def test_a_throttling_holds_until_the_time_that_was_asked_for_and_a_little_more():
    flow = told(Flow(), Kind.THROTTLED, after=60.0)
    assert (flow.held, flow.since) == (Why.THROTTLED, T)
    assert T + 60 <= flow.until <= T + 66


def test_a_throttling_takes_a_quarter_off_the_openness():
    flow = told(Flow(), Kind.THROTTLED, after=60.0)
    assert openness(flow, T) == openness(flow, flow.until + REST) == 0.75


def test_later_throttlings_only_lengthen_the_hold():
    flow = told(Flow(), Kind.THROTTLED, after=60.0)
    again = told(flow, *[Kind.THROTTLED] * 20, at=T + 1, after=100.0)
    assert (again.level, again.since) == (0.75, T)
    assert T + 101 <= again.until <= T + 111
    assert told(again, Kind.THROTTLED, at=T + 2, after=1.0).until == again.until


def test_the_rest_counts_from_the_end_of_the_hold():
    flow = told(told(Flow(), Kind.THROTTLED, after=10.0), Kind.THROTTLED, at=T + 5, after=300.0)
    assert flow.level_at == flow.until + REST


def test_without_a_retry_after_the_wait_is_five_seconds_and_doubles_per_failing_probe():
    flow, waits, at = told(Flow(), Kind.THROTTLED), [], T
    for _ in range(9):
        waits.append(flow.until - at)
        at = flow.until
        flow = told(flow, Kind.THROTTLED, at=at, probe=True)
    assert flow.level == 0.75
    for wait, least in zip(waits, [5, 10, 20, 40, 80, 160, 300, 300, 300], strict=True):
        assert least <= wait <= least * 1.1


def test_after_a_success_the_own_wait_begins_at_five_seconds_again():
    flow = told(told(Flow(), Kind.THROTTLED), *[Kind.THROTTLED] * 3, probe=True)
    opened = told(flow, Kind.OK, at=flow.until, probe=True)
    assert 5 <= told(opened, Kind.THROTTLED, at=T + 999).until - (T + 999) <= 5.5


@pytest.mark.parametrize(("after", "least", "most"), [(0.0, 1.0, 1.1), (-9.0, 1.0, 1.1), (1e9, 86400.0, 86400.0)])
def test_a_hold_is_never_shorter_than_a_second_nor_longer_than_a_day(after, least, most):
    assert least <= told(Flow(), Kind.THROTTLED, after=after).until - T <= most


def test_successes_that_were_on_their_way_do_not_end_a_throttling():
    flow = told(Flow(), Kind.THROTTLED, after=60.0)
    assert succeed(flow, 50).held == Why.THROTTLED


def test_the_probe_of_a_throttling_opens_at_the_openness_that_is_left():
    flow = told(ready(Why.THROTTLED, level=0.75, level_at=T + REST), Kind.OK, probe=True)
    assert (flow.held, openness(flow, T)) == ("", 0.75)


def test_the_next_throttling_remembers_where_it_hit():
    flow = told(Flow(level=0.75, level_at=T - 60), Kind.THROTTLED, after=5.0)
    assert flow.ceiling == pytest.approx(0.8)
    assert flow.level == pytest.approx(0.6)


def test_a_throttling_on_the_ramp_cuts_what_the_ramp_had_reached():
    flow = told(Flow(ramp=0.4, ramped=3), Kind.THROTTLED, after=5.0)
    assert (flow.level, flow.ceiling, flow.ramp) == (pytest.approx(0.3), 0.4, 1.0)


def test_throttlings_without_end_leave_a_hundredth():
    flow = Flow()
    for i in range(99):
        flow = told(flow, Kind.THROTTLED, at=T + i * 100.0, after=5.0)
        flow = told(flow, Kind.OK, at=T + i * 100.0 + 50, probe=True)
    assert openness(flow, flow.level_at) == 0.01


def test_the_rest_after_a_hold_that_ended_early_counts_from_its_end():
    flow = told(told(Flow(), Kind.THROTTLED, after=80000.0), Kind.OK, at=T + 60, probe=True)
    assert flow.level_at == T + 60 + REST


# Outage


def test_three_connection_failures_in_a_row_shut_the_queue_even_of_one_job():
    assert told(Flow(), *[Kind.DOWN] * 2, jobs=[1, 1]).held == ""
    flow = told(Flow(), *[Kind.DOWN] * 3, jobs=[1, 1, 1])
    assert (flow.held, openness(flow, T)) == (Why.DOWN, 0.0)
    assert T + 5 <= flow.until <= T + 5.5


@pytest.mark.parametrize("between", [Kind.OK, Kind.FAILED, Kind.REFUSED, Kind.GONE, Kind.LOGIN, Kind.MOVED, Kind.AGAIN])
def test_whatever_shows_a_connection_ends_the_row(between):
    assert told(Flow(), Kind.DOWN, Kind.DOWN, between, Kind.DOWN, jobs=[1, 1, 2, 1]).held == ""


@pytest.mark.parametrize("kind", [Kind.RELEASED, Kind.SNOOZED, Kind.CHARGED, Kind.UNCLEAR, Kind.EXPIRED])
def test_what_says_nothing_about_the_target_does_not_end_the_row(kind):
    assert told(Flow(), Kind.DOWN, Kind.DOWN, kind, Kind.DOWN).held == Why.DOWN


@pytest.mark.parametrize(
    ("jobs", "held"), [([1, 2, 3, 1, 2], Why.DOWN), ([1, 2, 1, 2, 1], ""), ([1] * 50, ""), ([1, 2, 3, 4], "")]
)
def test_five_failures_of_three_different_jobs_shut_the_queue(jobs, held):
    assert told(Flow(), *[Kind.FAILED] * len(jobs), jobs=jobs).held == held


def test_failures_and_connection_failures_count_together():
    assert told(Flow(), Kind.FAILED, Kind.DOWN, Kind.FAILED, Kind.DOWN, Kind.FAILED).held == Why.DOWN


def test_a_success_between_begins_the_count_anew():
    flow = told(Flow(), *[Kind.FAILED] * 4)
    assert told(succeed(flow, 1), Kind.FAILED).held == ""
    assert encode(succeed(flow, 1)) == b""


def test_the_probe_of_an_outage_opens_from_a_tenth():
    flow = told(ready(Why.DOWN), Kind.OK, probe=True)
    assert (flow.held, openness(flow, T)) == ("", 0.1)


def test_a_success_that_was_on_its_way_is_evidence_too():
    assert told(ready(Why.DOWN), Kind.OK).held == ""


def test_each_ten_successes_double_the_ramp_up_to_the_value_before():
    flow = Flow(ramp=0.1, level=0.75, level_at=T)
    seen = []
    for _ in range(40):
        flow = succeed(flow, 1)
        seen.append(round(openness(flow, T), 2))
    assert [seen[i] for i in (8, 9, 19, 28, 29, 39)] == [0.1, 0.2, 0.4, 0.4, 0.75, 0.75]


@given(st.lists(st.integers(1, 30), max_size=20))
def test_successes_count_the_same_however_they_are_bundled(bundles):
    one_by_one = bundled = Flow(ramp=0.1)
    for n in bundles:
        bundled = succeed(bundled, n)
    for _ in range(sum(bundles)):
        one_by_one = succeed(one_by_one, 1)
    assert one_by_one == bundled


def test_the_ramp_ends_at_the_level_as_it_is_now():
    flow = Flow(level=0.3, level_at=T, ramp=0.2, ramped=9)
    later = succeed(flow, 1, at=T + 600)
    assert openness(later, T + 600) == 0.4


def test_failing_probes_come_after_5_s_to_5_min_with_jitter():
    flow, at = ready(Why.DOWN), T
    for least in [10, 20, 40, 80, 160, 300, 300]:
        flow = told(flow, Kind.DOWN, at=at, probe=True)
        assert flow.probing == 0.0
        assert least <= flow.until - at <= least * 1.1
        at = flow.until


def test_failures_that_were_on_their_way_do_not_delay_the_probe():
    flow = ready(Why.DOWN)
    assert told(flow, *[Kind.FAILED] * 9, *[Kind.DOWN] * 9) == flow


def test_a_probe_that_is_throttled_shows_a_living_target_whose_pace_is_not_to_blame():
    flow = told(ready(Why.DOWN), Kind.THROTTLED, after=30.0, probe=True)
    assert (flow.held, flow.level) == (Why.THROTTLED, 1.0)
    assert openness(told(flow, Kind.OK, at=T + 40, probe=True), T + 40) == 0.1


def test_a_probe_that_was_given_back_leaves_its_place_to_the_next_one_at_once():
    flow = told(ready(Why.DOWN), Kind.RELEASED, probe=True)
    assert (flow.held, flow.probing, flow.until < T) == (Why.DOWN, 0.0, True)


@pytest.mark.parametrize("kind", [Kind.SNOOZED, Kind.CHARGED, Kind.UNCLEAR, Kind.EXPIRED, Kind.LAPSED, Kind.ACT])
@pytest.mark.parametrize("why", [Why.DOWN, Why.THROTTLED, Why.LOGIN, "a code of a newer version"])
def test_a_probe_that_proves_nothing_is_followed_by_a_later_one(why, kind):
    flow = told(ready(why), kind, probe=True)
    assert (flow.held, flow.probing) == (why, 0.0)
    assert flow.until >= T + 10


# Login, address, refusal


@pytest.mark.parametrize(
    ("kind", "jobs", "why"), [(Kind.LOGIN, 3, Why.LOGIN), (Kind.GONE, 5, Why.GONE), (Kind.REFUSED, 5, Why.REFUSED)]
)
class TestNo:
    def test_so_many_different_jobs_hold_the_queue(self, kind, jobs, why):
        assert told(Flow(), *[kind] * (jobs - 1)).held == ""
        assert told(Flow(), *[kind] * jobs).held == why

    def test_the_same_job_again_and_again_does_not(self, kind, jobs, why):
        assert told(Flow(), *[kind] * 50, jobs=[7] * 50).held == ""

    def test_a_success_between_begins_the_count_anew(self, kind, jobs, why):
        flow = succeed(told(Flow(), *[kind] * (jobs - 1)), 1)
        assert told(flow, *[kind] * (jobs - 1)).held == ""

    def test_other_answers_between_do_not(self, kind, jobs, why):
        flow = told(Flow(), *[kind] * (jobs - 1))
        flow = told(flow, Kind.FAILED, Kind.SNOOZED, Kind.AGAIN, Kind.MOVED)
        assert told(flow, kind, jobs=[99]).held == why

    def test_its_probe_opens_from_a_tenth(self, kind, jobs, why):
        assert told(ready(why), Kind.OK, probe=True).ramp == 0.1

    def test_a_probe_with_the_same_answer_keeps_it_held(self, kind, jobs, why):
        flow = told(ready(why), kind, probe=True)
        assert (flow.held, flow.tries, flow.probing) == (why, 1, 0.0)

    @pytest.mark.parametrize("failure", [Kind.DOWN, Kind.FAILED])
    def test_a_probe_that_meets_an_outage_keeps_it_held(self, kind, jobs, why, failure):
        assert told(ready(why), failure, probe=True).held == why

    def test_a_probe_with_this_answer_shows_that_an_outage_is_over(self, kind, jobs, why):
        flow = told(ready(Why.DOWN), kind, probe=True)
        assert (flow.held, flow.ramp, set(flow.blamed)) == ("", 0.1, {why})


# The table as a whole


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_does_what_the_charge_table_says(kind):
    """Nine of a kind, each of another job."""
    held = {
        Effect.NONE: "",
        Effect.OPENS: "",
        Effect.ANSWERS: "",
        Effect.TOLD: "",
        Effect.THROTTLES: Why.THROTTLED,
        Effect.SHUTS: Why.DOWN,
        Effect.LOCKS_OUT: Why.LOGIN,
        Effect.LOSES: Why.GONE,
        Effect.REFUSES: Why.REFUSED,
    }[TABLE[kind].effect]
    flow = told(Flow(), *[kind] * 9)
    assert flow.held == held
    assert held or flow == Flow()


@pytest.mark.parametrize("kind", [kind for kind, row in TABLE.items() if row.effect is Effect.NONE])
def test_a_kind_without_an_effect_changes_nothing_at_all(kind):
    busy = told(Flow(ramp=0.2, ramped=3), Kind.DOWN, Kind.LOGIN)
    assert told(busy, *[kind] * 9) == busy


@given(REPORTS, REPORTS)
def test_reports_fold_the_same_in_one_go_and_in_two(some, others):
    now = T + 7200.0
    half = decode(encode(fold(Flow(), some, "crm", now)))
    assert fold(half, others, "crm", now) == fold(Flow(), some + others, "crm", now)


@given(REPORTS)
def test_openness_stays_between_0_and_1_and_the_flow_small(reports):
    flow = fold(Flow(), reports, "crm", T + 7200.0)
    assert 0.0 <= openness(flow, T + 7200.0) <= 1.0
    assert len(encode(flow)) < 400


@given(REPORTS)
def test_a_report_from_the_future_counts_as_of_now(reports):
    future = [msgspec.structs.replace(report, at=report.at + 1e6) for report in reports]
    flow = fold(Flow(), future, "crm", T)
    assert flow.since <= T
    assert flow.until <= T + 86400.0
