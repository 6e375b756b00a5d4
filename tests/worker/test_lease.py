"""A lease is renewed in a thread of its own: whoever blocks what, nothing is lost while the process lives."""

import asyncio
import logging
import threading
import time

import pytest

from tests.worker.support import LEASE, a_worker, claimed, in_loop, numbered, put, states, sync, until, working
from treppe.errors import StoreUnavailable
from treppe.job import Event, Kind
from treppe.settle import AFTER_LAPSE
from treppe.upkeep import Upkeep


def busy(seconds: float) -> None:
    """Hold a thread, and the interpreter's lock most of the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(200))


def watching(store):
    """Upkeep by somebody else, as often as can be; what it lapses would be lost."""
    return lambda: store.upkeep(AFTER_LAPSE).lapsed


def test_a_handler_that_blocks_the_loop_for_three_leases_loses_nothing(store):
    async def block(run):
        busy(3 * LEASE)

    put(store, "blocks")
    look = watching(store)
    with working(store, {"task": in_loop(block)}) as worker:
        until(lambda: look() or store.backlog().done == 1)
    assert worker.tally.refused == 0
    assert [line.event for line in store.get("blocks").history] == [Event.FINISH]


def test_threads_that_are_all_held_for_three_leases_lose_nothing(store):
    put(store, *numbered(4))
    look = watching(store)
    with working(store, {"task": sync(lambda run: busy(3 * LEASE))}, threads=4) as worker:
        until(lambda: look() or store.backlog().done == 4, 20)
    assert worker.tally.refused == 0
    assert {len(store.get(id).history) for id in numbered(4)} == {1}


def test_a_store_that_is_busy_with_our_own_writes_keeps_no_renewal_waiting(store):
    """Renewal has a connection of its own; it does not queue up behind the engine's transactions."""
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            put(store, *[f"noise-{threading.get_ident()}-{n + i}" for i in range(50)], task="nobody's")
            n += 50

    writers = [threading.Thread(target=write) for _ in range(3)]
    put(store, "job")
    go = threading.Event()
    with working(store, {"task": sync(lambda run: go.wait(10) and None)}) as worker:
        until(lambda: states(store, "job") == {"running"})
        for writer in writers:
            writer.start()
        give_up = time.monotonic() + 2 * LEASE
        look = watching(store)
        while time.monotonic() < give_up:
            assert not look()
        stop.set()
        for writer in writers:
            writer.join()
        go.set()
        until(lambda: states(store, "job") == {"done"})
    assert worker.tally.refused == 0


def test_a_worker_whose_lease_was_lost_goes_on_under_another_name(store, caplog):
    put(store, "first")
    with working(store, {"task": sync(lambda run: None)}) as worker:
        until(lambda: states(store, "first") == {"done"})
        before = worker._lease.worker
        with caplog.at_level(logging.WARNING, "treppe.worker"):
            store.retire(before)
            until(lambda: worker._lease.worker != before)
        put(store, "second")
        until(lambda: states(store, "second") == {"done"})
    assert "the lease was lost; going on under a new identity" in caplog.text


def test_coroutines_of_a_lost_lease_are_cancelled_and_their_jobs_go_back(store):
    """Others may have them by now; a thread cannot be ended, a coroutine can."""
    began, cancelled = [], threading.Event()

    async def wait_the_first_time(run):
        began.append(run.claim.token)
        if len(began) == 1:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

    put(store, "job")
    with working(store, {"task": in_loop(wait_the_first_time)}) as worker:
        until(lambda: began)
        store.retire(worker._lease.worker)
        until(cancelled.is_set)
        until(lambda: states(store, "job") == {"done"})
    assert len(set(began)) == 2
    released = store.get("job").history[0]
    assert (released.kind, released.error) == (Kind.RELEASED, "the lease was lost")


@pytest.mark.parametrize("error", [StoreUnavailable("busy"), RuntimeError("a fault of the adapter")])
def test_renewals_that_fail_for_a_while_are_made_up_for(store, error):
    put(store, "first")
    with working(store, {"task": sync(lambda run: None)}) as worker:
        until(lambda: states(store, "first") == {"done"})
        renew, failed = store.renew, threading.Event()

        def fail(*_):
            failed.set()
            raise error

        store.renew = fail
        until(failed.is_set)
        until(lambda: not worker._lease.fresh)
        store.renew = renew
        put(store, "second")
        until(lambda: states(store, "second") == {"done"})


def test_a_worker_that_cannot_renew_claims_nothing_new(store):
    with working(store, {"task": sync(lambda run: None)}) as worker:
        until(lambda: worker._lease.fresh)
        store.renew = lambda *_: (_ for _ in ()).throw(StoreUnavailable("busy"))
        until(lambda: not worker._lease.fresh)
        put(store, "job")
        give_up = time.monotonic() + LEASE
        while time.monotonic() < give_up:
            assert states(store, "job") == {"waiting"}
        del store.renew
        until(lambda: states(store, "job") == {"done"})


def test_a_lease_that_cannot_be_taken_at_the_start_comes_through(store):
    store.enlist = lambda *_: (_ for _ in ()).throw(StoreUnavailable("away"))
    with pytest.raises(StoreUnavailable, match="away"):
        a_worker(store, {}).run()


def test_a_worker_signs_off_when_it_ends(store):
    """What it may have left can lapse at once; nobody has to wait for its lease."""
    put(store, "job")
    with working(store, {"task": sync(lambda run: None)}, lease=3600.0) as worker:
        until(lambda: states(store, "job") == {"done"})
    assert not store.renew(worker._lease.worker, 3600.0)


def test_a_sign_off_that_fails_is_told_and_no_more(store, caplog):
    put(store, "job")
    with working(store, {"task": sync(lambda run: None)}):
        until(lambda: states(store, "job") == {"done"})
        store.retire = lambda worker: (_ for _ in ()).throw(StoreUnavailable("away"))
    assert "could not sign off: away" in caplog.text


def test_upkeep_of_a_worker_lapses_nothing_of_a_living_one(store):
    go = threading.Event()
    put(store, "job")
    with working(store, {"task": sync(lambda run: go.wait(10) and None)}) as worker:
        until(lambda: states(store, "job") == {"running"})
        upkeep = Upkeep(store)
        with working(store, {}, chores=upkeep.turn):
            give_up = time.monotonic() + 3 * LEASE
            while time.monotonic() < give_up:
                assert states(store, "job") == {"running"}
                upkeep.round()
        go.set()
        until(lambda: states(store, "job") == {"done"})
    assert worker.tally.refused == 0
    assert claimed(store) == ()


def test_a_coroutine_may_use_the_store_while_it_runs(store):
    async def write(run):
        assert await asyncio.to_thread(run.note, "half", b"1")

    put(store, "job")
    with working(store, {"task": in_loop(write)}):
        until(lambda: states(store, "job") == {"done"})
    assert store.notes("job") == {"half": b"1"}
