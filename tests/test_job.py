"""The state table: every row leads where it says, and nothing else leads anywhere."""

from itertools import product

import pytest

from tests.docs_diagram import STATES_PAGE, page
from treppe.errors import IllegalTransition
from treppe.job import TRANSITIONS, Event, State, Transition, When, advance, band_of, sources_of

ROWS = {(row.source, row.event): row for row in TRANSITIONS}
CONDITIONAL = [row for row in TRANSITIONS if row.when is not When.ALWAYS]
OTHERS = [pair for pair in product(State, Event) if pair not in ROWS]


def named(row: Transition) -> str:
    return f"{row.source} {row.event}"


@pytest.mark.parametrize("row", TRANSITIONS, ids=named)
def test_every_row_leads_where_it_says(row):
    assert advance(row.source, row.event, row.when) is row.target


@pytest.mark.parametrize("row", CONDITIONAL, ids=named)
@pytest.mark.parametrize("when", When)
def test_a_row_with_a_circumstance_needs_exactly_that_one(row, when):
    if when is row.when:
        assert advance(row.source, row.event, when) is row.target
    else:
        with pytest.raises(IllegalTransition):
            advance(row.source, row.event, when)


@pytest.mark.parametrize("row", [row for row in TRANSITIONS if row.when is When.ALWAYS], ids=named)
@pytest.mark.parametrize("when", When)
def test_a_row_without_a_circumstance_does_not_mind_one(row, when):
    assert advance(row.source, row.event, when) is row.target


@pytest.mark.parametrize(("state", "event"), OTHERS, ids=str)
@pytest.mark.parametrize("when", When)
def test_every_other_pair_is_refused(state, event, when):
    with pytest.raises(IllegalTransition, match=event) as refused:
        advance(state, event, when)
    assert (refused.value.state, refused.value.event) == (state, event)


def test_no_pair_of_state_and_event_has_two_rows():
    assert len(ROWS) == len(TRANSITIONS)


def test_done_cancelled_and_moved_jobs_stay_what_they_are():
    assert {row.source for row in TRANSITIONS}.isdisjoint({State.DONE, State.CANCELLED, State.MOVED})


def test_a_dead_job_comes_back_only_by_a_human_or_moves():
    from_the_dead = {row.event for row in TRANSITIONS if row.source is State.DEAD}
    assert from_the_dead == {Event.REVIVE, Event.CONFIRM, Event.CANCEL, Event.MOVE}


def test_only_a_cancel_asked_for_ends_a_running_job():
    assert ROWS[State.RUNNING, Event.CANCEL].when is When.FLAGGED
    with pytest.raises(IllegalTransition):
        advance(State.RUNNING, Event.CANCEL)


def test_a_late_settle_counts_from_waiting_and_unclear_only():
    late = {row.source for row in TRANSITIONS if row.when is When.LATE}
    assert late == {State.WAITING, State.UNCLEAR}


def test_an_unclear_job_is_claimed_only_to_look():
    assert ROWS[State.UNCLEAR, Event.CLAIM].when is When.LOOKING


def test_only_the_relay_moves_a_running_job():
    assert ROWS[State.RUNNING, Event.MOVE].when is When.RELAYING


def test_every_state_can_be_reached_and_every_event_is_used():
    assert {row.target for row in TRANSITIONS} | {State.WAITING} == set(State)
    assert {row.event for row in TRANSITIONS} == set(Event)


@pytest.mark.parametrize("event", Event)
def test_the_guard_of_a_human_act_allows_what_the_table_allows(event):
    for state in State:
        allowed = (state, event) in ROWS and ROWS[state, event].when is When.ALWAYS
        assert (state in sources_of(event)) is allowed


@pytest.mark.parametrize("state", State)
def test_final_states_are_those_that_only_a_human_changes(state):
    assert state.final is (state in {State.DONE, State.DEAD, State.CANCELLED, State.MOVED})


@pytest.mark.parametrize(("priority", "band"), [(100, 0), (50, 0), (49, 1), (1, 1), (0, 2), (-1, 3), (-100, 3)])
def test_priorities_fall_into_four_bands(priority, band):
    assert band_of(priority) == band


def test_the_page_about_states_is_what_the_table_says():
    assert STATES_PAGE.read_text(encoding="utf-8") == page()
