import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.config import Rate
from treppe.policy.pace import Flow, Limits, Pause, Why, decode, encode, openness
from treppe.policy.pace.flow import REST, TICK, current, on_grid, slots

MINUTE = 60.0
TIMES = st.floats(0, 4e9)
PARTS = st.floats(0.01, 1.0)
FLOWS = st.builds(
    Flow,
    at=TIMES, tat=TIMES, level=PARTS, level_at=TIMES, ceiling=PARTS, ramp=PARTS, ramped=st.integers(0, 9),
    held=st.sampled_from(["", *(why for why in Why if why is not Why.PAUSED)]),
    since=TIMES, until=TIMES, tries=st.integers(0, 99), probing=TIMES, row=st.integers(0, 2), fails=st.integers(0, 9),
    blamed=st.dictionaries(st.sampled_from(Why), st.tuples(st.integers(1, 9)), max_size=2),
    paused=st.none() | st.builds(Pause, by=st.text(), at=TIMES, note=st.text()),
)  # fmt: skip


@given(FLOWS)
def test_a_flow_survives_being_stored(flow):
    assert decode(encode(flow)) == flow or encode(flow) == b""


def test_a_flow_with_nothing_to_remember_is_stored_as_nothing():
    assert encode(Flow()) == encode(Flow(at=5.0)) == b""
    assert decode(b"") == decode(None) == Flow()


def test_a_flow_of_a_newer_version_is_read_without_what_is_new():
    newer = msgspec.msgpack.encode({"level": 0.5, "held": "throttled", "mood": "gloomy", "extra": {"a": 1}})
    assert decode(newer) == Flow(level=0.5, held="throttled")


@pytest.mark.parametrize("value", [b"\xff", b"nonsense", msgspec.msgpack.encode({"level": "much"}), b"\x91\x01"])
def test_a_flow_that_cannot_be_read_begins_anew(value):
    assert decode(value) == Flow()


@given(FLOWS, TIMES)
def test_openness_is_between_0_and_1(flow, now):
    assert 0.0 <= openness(flow, now) <= 1.0


@pytest.mark.parametrize("why", [Why.DOWN, Why.LOGIN, Why.GONE, Why.REFUSED, "a code of a newer version"])
def test_a_hold_that_is_no_throttling_shuts(why):
    assert openness(Flow(held=why), 0.0) == 0.0


def test_after_a_throttling_openness_rests_then_grows_by_a_twentieth_a_minute():
    flow = Flow(level=0.75, level_at=1000.0)
    grown = [openness(flow, 1000.0 + minutes * MINUTE) for minutes in (-3, 0, 1, 2)]
    assert grown == pytest.approx([0.75, 0.75, 0.8, 0.85])


def test_near_the_ceiling_openness_creeps_and_beyond_it_grows_again():
    flow = Flow(level=0.6, ceiling=0.8)
    at_knee = (0.76 - 0.6) / 0.05
    assert openness(flow, at_knee * MINUTE) == pytest.approx(0.76)
    assert openness(flow, (at_knee + 1) * MINUTE) == pytest.approx(0.765)
    assert openness(flow, (at_knee + 8) * MINUTE) == pytest.approx(0.8)
    assert openness(flow, (at_knee + 8 + 1) * MINUTE) == pytest.approx(0.85)


@given(FLOWS)
def test_full_openness_always_comes_back_by_itself_within_the_hour_once_nothing_holds(flow):
    free = msgspec.structs.replace(flow, held="", ramp=1.0)
    assert openness(free, flow.level_at + 3600.0) == 1.0


@given(PARTS, PARTS, st.floats(0, 7200), st.floats(0, 7200))
def test_openness_never_falls_by_waiting(level, ceiling, one, other):
    flow = Flow(level=level, ceiling=ceiling)
    assert openness(flow, min(one, other)) <= openness(flow, max(one, other)) + 1e-9


def test_the_ramp_is_a_lid_on_the_level():
    assert openness(Flow(level=0.5, ramp=0.1), 0.0) == 0.1
    assert openness(Flow(level=0.5, ramp=0.8), 0.0) == 0.5


def test_what_is_regained_is_forgotten():
    regained = Flow(at=10.0, level=0.75, level_at=0.0, ceiling=1.0)
    assert encode(current(regained, 3600.0)) == b""
    assert current(regained, MINUTE).level == 0.75


def test_a_clock_that_stepped_back_takes_all_times_along():
    flow = Flow(at=1000.0, tat=1004.0, level=0.5, level_at=1000.0 + REST, held=Why.DOWN, since=990.0, until=1300.0,
                probing=1050.0, paused=Pause("mara", 900.0))  # fmt: skip
    moved = current(flow, 400.0)
    assert (moved.at, moved.tat, moved.level_at, moved.since, moved.until, moved.probing) == (
        400.0, 404.0, 400.0 + REST, 390.0, 700.0, 450.0
    )  # fmt: skip
    assert moved.paused == Pause("mara", 900.0)


@given(FLOWS, TIMES)
def test_a_clock_that_goes_forward_moves_nothing(flow, now):
    assert current(flow, flow.at + now).until == flow.until


@pytest.mark.parametrize(
    ("limits", "open_by", "most"),
    [
        (Limits(), 1.0, None),
        (Limits(), 0.75, 12),
        (Limits(), 0.01, 1),
        (Limits(concurrent=8), 1.0, 8),
        (Limits(concurrent=8), 0.5, 4),
        (Limits(concurrent=1), 0.5, 1),
        (Limits(Rate(2, 1.0), concurrent=8), 0.5, 8),
        (Limits(Rate(2, 1.0)), 0.5, None),
    ],
)
def test_without_a_rate_openness_scales_what_is_in_flight(limits, open_by, most):
    assert slots(limits, open_by) == most


@pytest.mark.parametrize(
    ("rate", "burst", "interval"),
    [
        (Rate(2, 1.0), 1, 0.5),
        (Rate(300, 15.0), 1, 0.05),
        (Rate(10, 1.0), 6, 0.2),
        (Rate(4, 1.0), 9, 1.0),
    ],
)
def test_the_interval_leaves_room_for_the_burst(rate, burst, interval):
    assert Limits(rate, burst).interval == pytest.approx(interval, abs=TICK)


@given(TIMES)
def test_the_grid_rounds_up_and_is_exact(seconds):
    on = on_grid(seconds)
    assert seconds <= on <= seconds + TICK
    assert (on / TICK).is_integer()
