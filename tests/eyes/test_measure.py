"""The figures: one count for everybody, with its age, and what holds a queue."""

import threading

import msgspec
import pytest

from tests.eyes.support import PACER, claims, dead, held, put, unclear
from treppe.errors import StoreUnavailable
from treppe.eyes import hands
from treppe.eyes.measure import Figures, QueueFigures


def test_an_empty_store_has_nothing_to_say(figures):
    summary = figures.summary()
    assert (summary.open, summary.oldest_age_s, summary.accepted, summary.done, summary.queues) == (0, None, 0, 0, ())


def test_the_figures_are_those_of_the_store(store, clock, figures):
    put(store, "late", delay=60.0)
    put(store, "a")
    put(store, "b")
    dead(store, "broken", queue="stock")
    unclear(store, "asked")
    claims(store, 1, "crm")
    clock.advance(30)
    summary = figures.summary()
    crm, stock, accounting = summary.queue("crm"), summary.queue("stock"), summary.queue("accounting")
    assert (crm.waiting, crm.scheduled, crm.running, crm.oldest_age_s) == (1, 1, 1, 30.0)
    assert (stock.dead, accounting.unclear) == (1, 1)
    assert (summary.open, summary.accepted, summary.dead, summary.unclear) == (4, 5, 1, 1)
    assert summary.oldest_age_s == 30.0


def test_a_count_is_kept_for_five_seconds_and_tells_its_age(store, clock, figures):
    assert figures.summary().accepted == 0
    put(store, "a")
    clock.advance(4)
    assert (figures.summary().accepted, figures.summary().age_s) == (0, 4.0)
    clock.advance(1)
    assert (figures.summary().accepted, figures.summary().age_s) == (1, 0.0)


def test_after_an_act_the_next_caller_counts_anew(store, figures):
    figures.summary()
    put(store, "a")
    figures.forget()
    assert figures.summary().accepted == 1


def test_many_callers_share_one_count(store, clock):
    counts, counting = [], threading.Event()

    class Slow:
        journal, now = store.journal, store.now

        def backlog(self):
            counts.append(1)
            counting.wait(5)
            return store.backlog()

    figures = Figures(Slow(), PACER, clock=clock)
    callers = [threading.Thread(target=figures.summary) for _ in range(8)]
    for caller in callers:
        caller.start()
    counting.set()
    for caller in callers:
        caller.join(5)
    assert len(counts) == 1


def test_a_store_that_fails_is_asked_again_at_once(store, clock):
    answers = [StoreUnavailable("busy"), store.backlog()]

    class Flaky:
        journal = store.journal

        def backlog(self):
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    figures = Figures(Flaky(), PACER, clock=clock)
    with pytest.raises(StoreUnavailable):
        figures.summary()
    assert figures.summary().open == 0


def test_a_held_queue_says_why_and_when_it_goes_on(store, clock, figures):
    held(store, "accounting", 60.0)
    queue = figures.summary().queue("accounting")
    assert (queue.held, queue.paused, queue.why, queue.openness) == (True, False, "throttled", 0.75)
    assert 60.0 <= queue.resumes_at - clock() <= 66.0
    assert queue.paced


def test_a_paused_queue_says_who_and_what_for(store, figures):
    hands.pause(store, "crm", "olga", "they migrate")
    queue = figures.summary().queue("crm")
    assert (queue.held, queue.paused, queue.by, queue.note, queue.resumes_at) == (
        True,
        True,
        "olga",
        "they migrate",
        None,
    )


def test_a_queue_that_nothing_is_known_of_is_all_zero(figures):
    assert figures.summary().queue("nowhere") == QueueFigures("nowhere")


def test_the_summary_is_json_for_machines(store, figures):
    held(store)
    put(store, "a", "accounting")
    told = msgspec.json.decode(msgspec.json.encode(figures.summary()))
    assert told["open"] == 1
    assert {"accepted", "done", "oldest_age_s", "age_s"} <= told.keys()
    assert (
        told["queues"][0] | {"queue": "accounting", "waiting": 1, "held": True, "why": "throttled"} == told["queues"][0]
    )
