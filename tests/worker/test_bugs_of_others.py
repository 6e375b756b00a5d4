"""Faults that other queues had in public, of their whole kind; see ``docs/others-bugs.md`` for the list."""

import pytest

from tests.worker.support import LEASE, in_loop, put, states, sync, until, working
from treppe.job import Event
from treppe.policy.pace import Pacer
from treppe.settle import AFTER_LAPSE
from treppe.store.protocol import Wanted
from treppe.worker.lease import Lease


def test_a_worker_that_comes_back_under_the_same_name_is_another_one(store):
    """After a restart in a container all names are the same, and orphans were never found (oban#862)."""
    put(store, "orphan")
    killed, restarted = Lease(store, LEASE), Lease(store, 10 * LEASE)
    killed._take()
    assert store.claim(Wanted(killed.worker, 1, 1, frozenset({"task"})), Pacer({})).claims
    restarted.start()
    try:
        assert restarted.worker != killed.worker
        until(lambda: store.upkeep(AFTER_LAPSE).lapsed)
        assert states(store, "orphan") == {"waiting"}
    finally:
        restarted.stop()


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), MemoryError(), RecursionError()], ids=repr)
def test_one_job_that_ends_badly_takes_nobody_of_its_batch_along(store, error):
    """One bad job aborted the dispatch of all that were read with it (dbos#546, #716)."""

    def plain(run):
        if run.claim.id.startswith("bad"):
            raise error

    async def in_the_loop(run):
        if isinstance(error, Exception):
            plain(run)

    for task in ("plain", "loop"):
        put(store, f"{task} 1", f"bad {task}", f"{task} 2", f"{task} 3", task=task)
    with working(store, {"plain": sync(plain), "loop": in_loop(in_the_loop)}) as worker:
        until(lambda: states(store, "plain 1", "plain 2", "plain 3", "loop 1", "loop 2", "loop 3") == {"done"})
        until(lambda: store.get("bad plain").history)
    assert store.get("bad plain").history[0].event is Event.DEFER
    assert worker.tally.done >= 6
