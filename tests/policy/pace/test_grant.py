import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policy.pace.test_report import REPORT, REPORTS, T
from treppe.config import Rate
from treppe.job import Kind, Report
from treppe.policy.pace import Flow, Limits, Pacer, Why, decode, encode, openness, pause
from treppe.policy.pace.grant import PROBE_LEASE
from treppe.store.protocol import Pace

TWO_A_SECOND = Limits(Rate(2, 1.0))


def pacer(limits=TWO_A_SECOND) -> Pace:
    return Pacer({"crm": limits})


def ask(limits=TWO_A_SECOND, flow=None, reports=(), running=0, now=T, want=10, ahead=0.0):
    value = encode(flow) if isinstance(flow, Flow) else flow
    return pacer(limits).grant("crm", value, reports, running, now, want, ahead)


def held(why, **more):
    return Flow(at=T, held=why, since=T - 60, until=T - 1, **more)


# Which limits


def test_the_exact_name_wins_then_the_longest_pattern():
    limits = {name: Limits(concurrent=n) for n, name in enumerate(["shop:*", "shop:acme", "shop:a*", "*"], start=1)}
    found = Pacer(limits)
    assert [found.limits(q).concurrent for q in ("shop:acme", "shop:abc", "shop:x", "crm")] == [2, 3, 1, 4]


def test_only_a_rate_or_a_concurrency_limits_a_queue():
    assert Pacer({"a": TWO_A_SECOND}).limited("a")
    assert Pacer({"a": Limits(concurrent=1)}).limited("a")
    assert not Pacer({"a": Limits(burst=7)}).limited("a")
    assert not Pacer({}).limited("a")


# Rate


def test_starts_are_spread_evenly():
    assert ask(Limits(Rate(4, 1.0)), ahead=1.0).starts == (T, T + 0.25, T + 0.5, T + 0.75, T + 1.0)


def test_without_reach_one_starts_at_a_time_and_the_wait_is_until_the_next():
    grant = ask()
    assert (grant.n, grant.starts, grant.wait) == (1, (T,), 0.5)
    assert ask(flow=grant.flow, now=T + 0.4).n == 0
    assert ask(flow=grant.flow, now=T + 0.5).starts == (T + 0.5,)


def test_the_wait_leaves_half_of_the_reach_so_that_starts_come_in_batches():
    grant = ask(Limits(Rate(100, 1.0)), want=500, ahead=1.0)
    assert grant.n == 100
    assert grant.wait == pytest.approx(0.5, abs=0.02)


def test_the_wait_is_told_although_everything_wanted_was_granted():
    assert ask(want=1).wait == 0.5


def test_there_is_nothing_to_wait_for_while_more_could_start():
    assert ask(want=0).wait is None
    assert ask(Limits(Rate(100, 1.0)), want=5, ahead=1.0).wait is None


def test_a_burst_comes_at_once_and_the_rest_evenly():
    limits = Limits(Rate(4, 1.0), burst=3)
    assert ask(limits, ahead=1.0).starts == (T, T, T, T + 0.5, T + 1.0)


def test_openness_stretches_the_interval():
    grant = ask(Limits(Rate(4, 1.0)), Flow(level=0.5, level_at=T), ahead=1.0)
    assert grant.starts == (T, T + 0.5, T + 1.0)


def test_five_hundred_a_second_need_no_more_than_a_few_grants():
    limits, flow, now, grants, starts = Limits(Rate(500, 1.0)), None, T, 0, 0
    while now < T + 10:
        grant = ask(limits, flow, now=now, want=500, ahead=1.0)
        flow, starts, grants, now = grant.flow, starts + grant.n, grants + 1, now + (grant.wait or 0.0)
    assert grants <= 25
    assert starts >= 4990


# Concurrency


@pytest.mark.parametrize(("running", "n"), [(0, 3), (2, 1), (3, 0), (9, 0)])
def test_slots_are_never_exceeded(running, n):
    grant = ask(Limits(concurrent=3), running=running)
    assert (grant.n, grant.slots, grant.wait) == (n, 3, None)


def test_full_slots_are_worth_no_waiting_although_the_rate_has_room():
    grant = ask(Limits(Rate(2, 1.0), concurrent=1), running=1)
    assert (grant.n, grant.wait) == (0, None)


def test_a_queue_with_slots_only_writes_no_flow():
    assert ask(Limits(concurrent=3)).flow is None


def test_a_queue_without_limits_that_was_throttled_has_slots_for_a_while():
    flow = Flow(level=0.75, level_at=T)
    assert (ask(Limits(), flow, want=99).n, ask(Limits(), flow, want=99).slots) == (12, 12)
    later = ask(Limits(), flow, now=T + 3600.0, want=99)
    assert (later.n, later.slots, later.flow) == (99, None, b"")


# Held and paused


@pytest.mark.parametrize("why", [why for why in Why if why is not Why.PAUSED])
def test_a_held_queue_gives_nothing_until_its_time_then_one_probe(why):
    waiting = ask(flow=Flow(at=T, held=why, until=T + 7), now=T + 6.9)
    assert (waiting.n, waiting.probe) == (0, False)
    probe = ask(flow=held(why), want=50, ahead=1.0)
    assert (probe.n, probe.probe, probe.starts, probe.wait) == (1, True, (T,), PROBE_LEASE)


def test_the_wait_of_a_held_queue_is_until_its_next_probe():
    assert ask(flow=Flow(at=T, held=Why.DOWN, until=T + 7)).wait == 7


def test_while_a_probe_is_out_there_is_no_other_and_then_there_is():
    flow = ask(flow=held(Why.DOWN)).flow
    assert (ask(flow=flow, now=T + 20).n, ask(flow=flow, now=T + 20).wait) == (0, PROBE_LEASE - 20)
    assert ask(flow=flow, now=T + PROBE_LEASE).probe


def test_no_probe_goes_out_without_a_job_for_it():
    grant = ask(flow=held(Why.DOWN), want=0)
    assert (grant.n, grant.probe, decode(grant.flow).probing) == (0, False, 0.0)


def test_a_probe_keeps_to_the_slots_and_to_the_rate():
    assert ask(Limits(concurrent=2), held(Why.DOWN), running=2).n == 0
    early = ask(Limits(Rate(1, 60.0)), held(Why.DOWN, tat=T + 30))
    assert (early.n, early.wait) == (0, 30.0)


@pytest.mark.parametrize("flow", [Flow(), held(Why.DOWN)])
def test_a_paused_queue_gives_nothing_not_even_a_probe(flow):
    grant = ask(flow=pause(flow, "mara", T))
    assert (grant.n, grant.probe, grant.wait) == (0, False, None)


def test_a_paused_queue_goes_on_learning():
    flow = pause(held(Why.DOWN), "mara", T)
    grant = ask(flow=flow, reports=[Report(Kind.OK, 1, T, probe=True)])
    assert (grant.n, grant.wait, decode(grant.flow).held) == (0, None, "")
    assert decode(grant.flow).paused == flow.paused


# What is kept


def test_what_did_not_change_comes_back_as_the_very_bytes():
    flow = encode(Flow(at=T, held=Why.DOWN, until=T + 7))
    assert ask(flow=flow).flow is flow
    assert ask(Limits(), None).flow is None


def test_reports_are_folded_in_although_nothing_is_granted():
    flow = ask(reports=[Report(Kind.THROTTLED, 1, T, after=60.0)], want=0).flow
    assert (decode(flow).held, decode(flow).at) == (Why.THROTTLED, T)


def test_a_value_that_nobody_can_read_does_not_stop_the_queue():
    assert ask(flow=b"\xff").n == 1


# Properties

LIMITS = st.builds(
    Limits,
    rate=st.builds(Rate, n=st.integers(1, 40), per=st.sampled_from([0.1, 1.0, 2.5, 15.0, 60.0, 3600.0])),
    burst=st.integers(1, 12),
    concurrent=st.none() | st.integers(1, 8),
)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 4096).map(lambda n: n / 1024),  # seconds that pass
        st.sampled_from([0, 0, 0, 0, 1, 60, 3600, 86400]),  # seconds the clock steps back
        st.integers(0, 30),  # want
        st.sampled_from([0.0, 0.25, 1.0]),  # ahead
        st.lists(REPORT, max_size=2),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=300)
@given(LIMITS, STEPS)
def test_no_window_ever_holds_more_starts_than_the_rate_allows(limits, steps):
    """Measured by a clock that only goes forward; the store's own may step back as it likes."""
    flow, elapsed, behind, starts = None, 0.0, 0.0, []
    for passed, back, want, ahead, learned in steps:
        elapsed, behind = elapsed + passed, behind + back
        now = T + elapsed - behind
        reports = [msgspec.structs.replace(report, at=now) for report in learned]
        grant = ask(limits, flow, reports, 0, now, want, ahead)
        flow = grant.flow
        starts += [start + behind for start in grant.starts]
    starts.sort()
    n, per = limits.rate.n, limits.rate.per
    assert all(later - first >= per for first, later in zip(starts, starts[n:], strict=False))


@given(LIMITS, REPORTS, st.integers(0, 20), st.integers(0, 30), st.sampled_from([0.0, 1.0]))
def test_a_grant_is_pure_and_grows_with_what_is_wanted(limits, reports, running, want, ahead):
    now = T + 7200.0
    most = ask(limits, None, reports, running, now, 30, ahead)
    some = ask(limits, None, reports, running, now, want, ahead)
    assert some == ask(limits, None, reports, running, now, want, ahead)
    assert some.n == min(want, most.n)
    assert some.starts == most.starts[: some.n]
    assert limits.concurrent is None or running + some.n <= max(running, limits.concurrent)
    assert limits.concurrent is None or some.slots <= limits.concurrent


@given(LIMITS, STEPS)
def test_a_held_queue_gives_nothing_but_one_probe_at_a_time(limits, steps):
    flow, now, out_until = None, T, 0.0
    for passed, _, want, ahead, learned in steps:
        now += passed * 8
        reports = [msgspec.structs.replace(report, at=now) for report in learned]
        if any(report.probe or report.kind in (Kind.OK, Kind.THROTTLED) for report in reports):
            out_until = 0.0
        grant = ask(limits, flow, reports, 0, now, want, ahead)
        flow = grant.flow
        if decode(flow).held:
            assert grant.n == 0 or (grant.n == 1 and grant.probe and now >= out_until)
        out_until = now + PROBE_LEASE if grant.probe else out_until


@given(LIMITS, REPORTS)
def test_a_queue_always_opens_again_to_full_pace_when_its_probes_succeed(limits, reports):
    limits, now = msgspec.structs.replace(limits, rate=Rate(10, 1.0)), T + 7200.0
    flow = ask(limits, None, reports, 0, now, 0).flow
    for _ in range(100):
        grant = ask(limits, flow, [], 0, now, 1)
        success = Report(Kind.OK, 1, now, probe=grant.probe, n=1 if grant.probe else 10)
        flow = ask(limits, grant.flow, [success], 0, now, 0).flow if grant.n else grant.flow
        now += grant.wait or 1.0
    assert openness(decode(flow), now + 3600.0) == 1.0
    assert decode(flow).held == ""
