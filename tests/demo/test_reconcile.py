import msgspec
import pytest

from tests.demo.support import attempt, changed, good_friday, with_job, with_lines
from treppe.demo.ledger import Line
from treppe.demo.reconcile import Evidence, Figures, reconcile
from treppe.job import Kind, State

GOOD = good_friday()
LAST = {order.customer: order.number for order in GOOD.friday.burst()}
HEALTHY = min(set(LAST.values()) - set(GOOD.friday.broken.values()))
"""An order without anything special about it, and the last of its customer."""

ACCEPTED, ONCE, UNCLEAR, DEAD, ALERTED, IN_ORDER, NOT_CHARGED, FEW_HOLDS = range(8)


def broken(evidence: Evidence) -> list[int]:
    return [n for n, promise in enumerate(reconcile(evidence).promises) if not promise.kept]


def line_of(evidence: Evidence, destination: str, number: int = HEALTHY) -> Line:
    return next(line for line in evidence.ledgers[destination] if line.order == number)


def again(destination: str, first: dict[str, object], second: dict[str, object]) -> Evidence:
    """One order was called twice there: the first call with these fields, and the second."""
    line = line_of(GOOD, destination)
    one = msgspec.structs.replace(line, **first)
    two = msgspec.structs.replace(line, **{"at": line.at + 20, **second})
    return with_lines(GOOD, destination, lambda lines: [one if each == line else each for each in lines] + [two])


def test_a_good_friday_breaks_nothing():
    result = reconcile(GOOD)
    assert [promise for promise in result.promises if not promise.kept] == []
    assert result.figures == Figures(
        accepted=20,
        accept_p99_ms=5.0,
        delivered={"crm": 20, "accounting": 19, "stock": 19, "mail": 20},
        duplicates_at_remote=0,
        order_violations=0,
        dead=2,
        unclear_on_the_way=2,
        unclear=0,
        attempts_charged_by_outage=0,
        lost=0,
        peak_backlog=77,
        peak_age_s=10.0,
        restart_after_kill_s=None,
        promises_broken=0,
    )


def test_an_order_the_door_refused_breaks_a_promise():
    posted = [msgspec.structs.replace(line, status=503) if line.order == HEALTHY else line for line in GOOD.posted]
    assert broken(changed(GOOD, posted=posted)) == [ACCEPTED]


def test_an_accepted_order_that_is_not_in_the_store_breaks_a_promise():
    assert broken(changed(GOOD, jobs=[job for job in GOOD.jobs if job.id != with_any(HEALTHY).id])) == [ACCEPTED]


def with_any(number: int):
    event = next(line.event for line in GOOD.posted if line.order == number)
    return next(job for job in GOOD.jobs if event in job.id)


@pytest.mark.parametrize("destination", ["crm", "accounting", "stock", "mail"])
def test_a_lost_order_breaks_a_promise(destination: str):
    evidence = with_lines(GOOD, destination, lambda lines: [line for line in lines if line.order != HEALTHY])
    assert broken(evidence) == [ONCE]
    assert reconcile(evidence).figures.lost == 1


@pytest.mark.parametrize("destination", ["crm", "accounting", "stock", "mail"])
def test_a_call_that_acts_twice_breaks_a_promise(destination: str):
    evidence = again(destination, {"answer": None}, {"acted": True})
    assert broken(evidence) == [ONCE]
    assert reconcile(evidence).figures.duplicates_at_remote == 1


def test_a_second_call_after_an_answer_breaks_a_promise_though_it_changed_nothing():
    evidence = again("crm", {}, {"acted": False, "answer": 200})
    assert broken(evidence) == [ONCE]
    assert reconcile(evidence).figures.duplicates_at_remote == 0


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({"answer": None}, {"acted": False, "answer": 200}, "the first acted without an answer"),
        ({"answer": None, "acted": False}, {}, "the first hung"),
    ],
)
def test_a_second_call_at_the_crm_is_listed_where_the_first_got_no_answer(first, second, why):
    evidence = again("crm", first, second)
    assert broken(evidence) == []
    assert [(repeat.order, repeat.why) for repeat in reconcile(evidence).excused] == [(HEALTHY, why)]


def test_a_call_after_a_500_needs_no_excuse():
    evidence = again("crm", {"answer": 500, "acted": False}, {})
    assert broken(evidence) == []
    assert reconcile(evidence).excused == []


def test_a_killed_worker_may_take_an_answer_with_it():
    evidence = again("stock", {"who": "work"}, {"acted": False, "answer": 200})
    lapsed = with_job(evidence, HEALTHY, "stock", history=(attempt(Kind.LAPSED),))
    assert broken(lapsed) == []
    assert reconcile(lapsed).figures.restart_after_kill_s == 5.0
    assert broken(evidence) == [ONCE], "only a lapse in the job's history is an excuse"


def test_an_answer_to_another_worker_excuses_nothing():
    evidence = again("stock", {"who": "up"}, {"acted": False, "answer": 200})
    assert broken(with_job(evidence, HEALTHY, "stock", history=(attempt(Kind.LAPSED),))) == [ONCE]


def test_an_order_that_nobody_made_breaks_a_promise():
    stray = msgspec.structs.replace(line_of(GOOD, "mail"), order=7, customer=7)
    assert broken(with_lines(GOOD, "mail", lambda lines: [*lines, stray])) == [ONCE]


@pytest.mark.parametrize("state", [State.UNCLEAR, State.WAITING, State.RUNNING])
def test_a_job_that_is_not_at_its_end_breaks_a_promise(state: State):
    assert broken(with_job(GOOD, HEALTHY, "mail", state=state)) == [UNCLEAR]


def test_a_friday_on_which_nothing_was_unclear_has_proved_nothing():
    assert broken(changed(GOOD, unclear_on_the_way=0)) == [UNCLEAR]


def test_a_dead_letter_too_many_breaks_a_promise():
    assert broken(with_job(GOOD, HEALTHY, "mail", state=State.DEAD)) == [DEAD]


def test_a_broken_order_that_is_not_dead_breaks_a_promise():
    assert broken(with_job(GOOD, GOOD.friday.failing, "stock", state=State.DONE)) == [DEAD]


@pytest.mark.parametrize("channel", ["webhook", "mail"])
def test_an_alert_that_did_not_come_breaks_a_promise(channel: str):
    assert broken(changed(GOOD, told=[told for told in GOOD.told if told.channel != channel])) == [ALERTED]


def test_an_alert_about_only_one_of_them_breaks_a_promise():
    one = next(job.id for job in GOOD.jobs if job.state is State.DEAD)
    assert broken(changed(GOOD, told=[msgspec.structs.replace(told, text=one) for told in GOOD.told])) == [ALERTED]


def test_a_badly_signed_alert_breaks_a_promise():
    forged = msgspec.structs.replace(GOOD.told[0], genuine=False)
    assert broken(changed(GOOD, told=[*GOOD.told, forged])) == [ALERTED]


def test_an_overtaken_event_breaks_a_promise():
    later = next(line for line in GOOD.ledgers["mail"] if line.seq > 1)
    evidence = with_lines(GOOD, "mail", lambda lines: [later, *(line for line in lines if line != later)])
    assert broken(evidence) == [IN_ORDER]
    assert reconcile(evidence).figures.order_violations == 1


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.DOWN, Kind.FAILED])
def test_a_charged_attempt_of_a_healthy_order_breaks_a_promise(kind: Kind):
    evidence = with_job(GOOD, HEALTHY, "crm", history=(attempt(kind, charged=True),))
    assert broken(evidence) == [NOT_CHARGED]
    assert reconcile(evidence).figures.attempts_charged_by_outage == 1


def test_a_second_hold_within_three_minutes_breaks_a_promise():
    shut = msgspec.structs.replace(line_of(GOOD, "accounting"), at=20.5, answer=429, acted=False)
    assert broken(with_lines(GOOD, "accounting", lambda lines: [shut, *lines])) == [FEW_HOLDS]
    late = msgspec.structs.replace(shut, at=10.0 + 181.0)
    assert broken(with_lines(GOOD, "accounting", lambda lines: [late, *lines])) == []


def test_without_a_queue_nobody_asks_for_what_is_in_the_store():
    result = reconcile(changed(GOOD, queued=False, jobs=[], told=[], unclear_on_the_way=0))
    assert [n for n, promise in enumerate(result.promises) if not promise.kept] == [UNCLEAR, DEAD, ALERTED]
