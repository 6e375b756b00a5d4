import pytest

from treppe.config import Rate
from treppe.policy.pace import Flow, Limits, Pacer, Why, decode, describe, encode, pause, resume
from treppe.policy.pace.flow import REST

LIMITS = Limits(Rate(20, 1.0), concurrent=4)


def test_a_queue_at_full_pace():
    shown = describe(Flow(), LIMITS, now=100.0)
    assert (shown.held, shown.why, shown.since, shown.resumes_at) == (False, None, None, None)
    assert (shown.openness, shown.per_second, shown.in_flight) == (1.0, 20.0, 4)


def test_a_queue_without_limits_has_no_figures_but_its_openness():
    shown = describe(Flow(), Limits(), now=100.0)
    assert (shown.openness, shown.per_second, shown.in_flight) == (1.0, None, None)


def test_the_pace_is_rate_times_openness():
    flow = Flow(level=0.75, level_at=500.0)
    assert describe(flow, LIMITS, now=100.0).per_second == 15.0
    assert describe(flow, Limits(concurrent=8), now=100.0).in_flight == 6
    assert describe(Flow(), Limits(Rate(20, 1.0), burst=11), now=0.0).per_second == 10.0


def test_a_throttled_queue_tells_when_it_resumes():
    flow = Flow(level=0.75, level_at=500.0, held=Why.THROTTLED, since=90.0, until=160.0)
    shown = describe(flow, LIMITS, now=100.0)
    assert (shown.held, shown.why, shown.since, shown.resumes_at) == (True, Why.THROTTLED, 90.0, 160.0)
    assert shown.per_second == 15.0


@pytest.mark.parametrize("why", [Why.DOWN, Why.LOGIN, Why.GONE, Why.REFUSED])
def test_a_shut_queue_tells_why_and_when_it_is_tried_again(why):
    shown = describe(Flow(held=why, since=90.0, until=160.0), LIMITS, now=100.0)
    assert (shown.held, shown.why, shown.resumes_at, shown.openness, shown.per_second) == (True, why, 160.0, 0.0, 0.0)
    assert not shown.probing


def test_a_probe_that_is_out_is_shown():
    shown = describe(Flow(held=Why.DOWN, since=90.0, until=95.0, probing=150.0), LIMITS, now=100.0)
    assert (shown.probing, shown.resumes_at) == (True, 150.0)
    over = describe(Flow(held=Why.DOWN, since=90.0, until=95.0, probing=99.0), LIMITS, now=100.0)
    assert (over.probing, over.resumes_at) == (False, 95.0)


def test_a_pause_tells_who_and_why_and_waits_for_a_human():
    flow = pause(Flow(held=Why.DOWN, since=90.0, until=160.0), by="mara", at=99.0, note="they move house")
    shown = describe(flow, LIMITS, now=100.0)
    assert (shown.held, shown.why, shown.since, shown.resumes_at) == (True, Why.PAUSED, 99.0, None)
    assert (shown.by, shown.note) == ("mara", "they move house")


def test_a_code_of_a_newer_version_is_shown_as_down():
    assert describe(Flow(held="lunar eclipse"), LIMITS, now=1.0).why is Why.DOWN


def test_a_second_pause_keeps_the_first():
    assert pause(pause(Flow(), "mara", 1.0), "otto", 2.0).paused.by == "mara"


def test_a_pause_survives_being_stored_and_whatever_is_learned():
    paused = encode(pause(Flow(), "mara", 1.0))
    grant = Pacer({}).grant("crm", paused, [], 0, now=50.0, want=9, ahead=1.0)
    assert decode(grant.flow).paused.by == "mara"


def test_to_resume_ends_the_pause_first_and_leaves_the_hold_to_its_probes():
    flow = pause(Flow(held=Why.LOGIN, until=9.0), "mara", 1.0)
    assert resume(flow, at=100.0) == Flow(held=Why.LOGIN, until=9.0)


def test_to_resume_a_held_queue_opens_it_from_a_tenth():
    assert resume(Flow(held=Why.LOGIN, since=1.0, until=9.0, tries=7), at=100.0) == Flow(ramp=0.1)


def test_to_resume_a_throttled_queue_opens_it_at_the_openness_that_is_left():
    flow = Flow(level=0.75, level_at=5000.0, held=Why.THROTTLED, since=90.0, until=4820.0)
    assert resume(flow, at=100.0) == Flow(level=0.75, level_at=100.0 + REST)


def test_there_may_be_nothing_to_resume():
    assert resume(Flow(ramp=0.2), at=100.0) == Flow(ramp=0.2)
