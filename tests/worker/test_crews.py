"""Hands: what was never started is given back once, what was given up never starts."""

import time

from tests.worker.support import OK, claimed, in_loop, numbered, put, sync, until
from treppe.job import Kind
from treppe.store.bell import Bell
from treppe.worker.crew import Ended, Starts
from treppe.worker.handler import Run, released
from treppe.worker.loop import LoopCrew
from treppe.worker.threads import ThreadCrew


def runs(store, handler, n=3):
    put(store, *numbered(n))
    return [Run(claim, handler, store) for claim in claimed(store, n)]


def test_jobs_that_a_loop_has_not_begun_are_given_back_at_once(store):
    bell = Bell()
    ended, ran = Ended(bell), []
    crew = LoopCrew(10, ended, Starts())

    async def handle(run):
        ran.append(run.claim.id)

    try:
        mine = runs(store, in_loop(handle))
        crew.take(mine)
        crew.return_unstarted()
        found = []
        until(lambda: found.extend(ended.collect()) or len(found) == len(mine))
        assert all((run.outcome.kind is Kind.RELEASED) == (run.claim.id not in ran) for run in found)
    finally:
        crew.close()
        bell.close()


def test_a_thread_does_not_start_what_was_given_up(store):
    bell = Bell()
    ended, ran = Ended(bell), []
    crew = ThreadCrew(1, ended, Starts())
    handler = sync(lambda run: ran.append(run.claim.id) or OK)
    (later,) = runs(store, handler, 1)
    later.claim.start_at, later.not_before = 1.0, time.monotonic() + 0.3
    try:
        crew.take([later])
        crew.give_up(later, lambda begun: released("the worker was stopped", begun))
        (given_back,) = ended.collect()
        assert given_back.outcome.acted is False
        until(lambda: time.monotonic() > later.not_before + 0.1)
        assert ran == []
    finally:
        crew.close()
        bell.close()


def test_a_run_is_begun_or_given_up_and_never_both(store):
    first, second = runs(store, sync(lambda run: OK), 2)
    assert first.begin()
    assert first.abandon(), "it had begun"
    assert not second.abandon()
    assert not second.begin(), "it was given up before"
