"""Low-water marks: a slow machine alone leaves none; a scan that walked past strangers' jobs leaves one."""

import pytest

from treppe.job import Event, Kind, NewJob, Settlement
from treppe.policy.pace import Pacer
from treppe.store.protocol import Wanted
from treppe.store.sqlite import SQLiteStore, scanning
from treppe.testing.clock import ManualClock

WORKER = 7


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(tmp_path, clock, monkeypatch):
    """One on a machine on which every scan takes too long."""
    monkeypatch.setattr(scanning, "QUICK", -1.0)
    store = SQLiteStore(tmp_path / "jobs.db", durable=False, clock=clock)
    store.migrate()
    store.enlist(WORKER, "worker", 3600.0)
    yield store
    store.close()


def claim(store, task="task"):
    return store.claim(Wanted(WORKER, 10, 10, frozenset({task})), Pacer({})).claims


def end(store, claims, event=Event.FINISH, delay=0.0):
    kind = Kind.OK if event is Event.FINISH else Kind.FAILED
    assert store.settle([Settlement(one, event, kind, delay=delay) for one in claims]) == ()


def marks(store):
    return store._claimer._marks._places


def test_slow_scans_that_walk_past_nothing_leave_no_mark(store, clock):
    store.put([NewJob("joins", "task", "q", key="k", delay=10), NewJob("retries", "task", "q", key="k")])
    end(store, claim(store), Event.DEFER, 60.0)
    clock.advance(60)
    retries = claim(store)
    assert [one.id for one in retries] == ["retries"]
    assert claim(store) == ()
    end(store, retries)
    assert [one.id for one in claim(store)] == ["joins"]
    assert marks(store) == {}


def test_a_slow_scan_past_jobs_of_an_unknown_task_leaves_a_mark(store):
    store.put([NewJob("strange", "another task", "q")])
    store.put([NewJob("known", "task", "q")])
    assert [one.id for one in claim(store)] == ["known"]
    [(lane, (place, _))] = marks(store).items()
    assert (lane[0], lane[2]) == ("q", {"task"})
    assert place > scanning.START
    assert [one.id for one in claim(store, "another task")] == ["strange"]
