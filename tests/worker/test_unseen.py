"""A claim that failed and was carried out all the same, then or later: what nobody has seen goes back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.worker.support import a_worker, claimed, in_loop, numbered, put, states, sync, until, working
from treppe.errors import StoreUnavailable
from treppe.job import Claim, Event, Kind, Repeat
from treppe.settle import AFTER_LAPSE
from treppe.store.protocol import Claimed, Wanted


class Mute:
    """A store whose first claim fails, and is carried out all the same: at once, or after the first look for it."""

    def __init__(self, store: Any, late: bool) -> None:
        self.unseen: tuple[Claim, ...] = ()
        self.when_lost: Callable[[], None] = lambda: None
        self._store, self._late = store, late
        self._owed: tuple[Any, ...] | None = None
        self._failed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def claim(self, wanted: Wanted, pace: Any, settlements: Sequence[Any] = ()) -> Claimed:
        if self._failed:
            return self._store.claim(wanted, pace, settlements)
        self._failed, self._owed = True, (wanted, pace, settlements)
        if not self._late:
            self._carry_out()
        self.when_lost()
        raise StoreUnavailable("no answer")

    def held(self, worker: int) -> tuple[Claim, ...]:
        found = self._store.held(worker)
        if self._owed:
            self._carry_out()
        return found

    def _carry_out(self) -> None:
        owed, self._owed = self._owed, None
        self.unseen = self._store.claim(*owed).claims


@pytest.mark.parametrize("repeat", [Repeat.SAFE, Repeat.ASK], ids=["safe", "ask"])
@pytest.mark.parametrize("late", [False, True], ids=["before its failure", "after the first look"])
def test_what_a_failed_claim_took_is_given_back_and_done_once(store, late, repeat):
    ids, ran = numbered(3), []
    put(store, *ids, repeat=repeat)
    mute = Mute(store, late)
    with working(mute, {"task": sync(lambda run: ran.append(run.claim.id))}):
        until(lambda: states(store, *ids) == {"done"})
    taken = {one.id for one in mute.unseen}
    assert taken
    assert sorted(ran) == ids
    for job in map(store.get, ids):
        assert [line.event for line in job.history] == [Event.DEFER] * (job.id in taken) + [Event.FINISH]
        assert (job.charged, job.crashes) == (0, 0)


def test_it_is_told_why_it_went_back(store):
    put(store, "job")
    with working(Mute(store, late=False), {"task": sync(lambda run: None)}):
        until(lambda: states(store, "job") == {"done"})
    back = store.get("job").history[0]
    assert (back.kind, back.error) == (Kind.RELEASED, "its claim was not answered")


def test_what_is_known_is_not_given_back(store):
    """A job that runs, and one whose end is not written yet, are held by this worker as well."""
    go, ran = threading.Event(), []

    async def wait(run):
        while not go.is_set():  # noqa: ASYNC110 - for what a test does in another thread
            await asyncio.sleep(0.003)

    put(store, "long", task="long")
    mute = Mute(store, late=False)
    mute._failed = True
    with working(mute, {"task": sync(lambda run: ran.append(run.claim.id)), "long": in_loop(wait)}):
        until(lambda: states(store, "long") == {"running"})
        mute._failed = False
        put(store, "job")
        until(lambda: states(store, "job") == {"done"})
        assert states(store, "long") == {"running"}
        go.set()
        until(lambda: states(store, "long") == {"done"})
    assert [line.event for line in store.get("long").history] == [Event.FINISH]
    assert ran == ["job"]


@pytest.mark.parametrize("repeat", [Repeat.SAFE, Repeat.ASK], ids=["safe", "ask"])
def test_a_worker_that_is_stopped_right_then_gives_it_back_before_it_goes(store, repeat):
    """Nobody has begun it: it must not become unclear, nor a suspect."""
    put(store, "job", repeat=repeat)
    mute = Mute(store, late=False)
    worker = a_worker(mute, {"task": sync(lambda run: None)})
    mute.when_lost = worker.stop
    worker.run()
    assert mute.unseen
    store.upkeep(AFTER_LAPSE)
    assert states(store, "job") == {"waiting"}
    assert [line.event for line in store.get("job").history] == [Event.DEFER]
    assert [claim.suspect for claim in claimed(store)] == [False]


def test_a_look_that_fails_is_made_again_also_when_it_was_to_be_the_last(store):
    """The store was away for so long that nothing can be carried out any more; what was must still go back."""
    put(store, "job")
    mute = Mute(store, late=False)
    worker = a_worker(mute, {"task": sync(lambda run: None)})
    look, failures = mute.held, iter([True, True, True])

    def fails_at_first(worker_id: int) -> tuple[Claim, ...]:
        if next(failures, False):
            worker._unseen._unsure_until = 0.0
            raise StoreUnavailable("away")
        return look(worker_id)

    mute.held = fails_at_first
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        until(lambda: states(store, "job") == {"done"})
    finally:
        worker.stop()
        thread.join(10)
    assert [line.event for line in store.get("job").history] == [Event.DEFER, Event.FINISH]
