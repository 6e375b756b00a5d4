"""Many workers at once, in threads and in processes: on keys, on limits, on leases, and people among them."""

import subprocess
import sys
import threading
from collections import Counter, defaultdict

import msgspec
import pytest

from treppe.config import Rate
from treppe.job import Event, Kind, State
from treppe.policy.pace import Limits, Pacer
from treppe.store.postgres import PostgresStore
from treppe.store.protocol import Filter
from treppe.testing.contract import Opener
from treppe.testing.contract.base import as_long_as, together
from treppe.testing.contract.child import Order
from treppe.testing.contract.paces import ScriptedPace, at_most
from treppe.testing.contract.verbs import (
    QUEUE,
    act,
    claim,
    deferred,
    find_all,
    finished,
    job,
    new_worker,
    put_many,
    read,
    seen,
    upkeep,
)

WORKERS = 8


def test_eight_workers_on_one_keyed_queue_keep_every_line_and_leave_nobody_behind(store):
    """Without any upkeep: whoever lets go of a key wakes the next, whatever another worker is doing to it."""
    for i in range(40):
        store.put([job(f"{key}-{i}", key=f"key-{key}", priority=(key % 3 - 1) * 50) for key in range(12)])
    lock, running, went = threading.Lock(), set(), defaultdict(list)

    def work():
        worker, held = new_worker(store, 1e6), []
        for _ in as_long_as(lambda: store.backlog().open):
            with lock:
                running.difference_update(one.key for one in held)
            held = claim(store, 4, worker=worker, settling=[finished(one) for one in held]).claims
            with lock:
                for one in held:
                    assert one.key not in running, f"two jobs of {one.key} run beside each other"
                    running.add(one.key)
                    went[one.key].append(int(one.id.split("-")[1]))

    together(*[work] * WORKERS)
    assert dict(went) == {f"key-{key}": list(range(40)) for key in range(12)}
    assert left_over(store) == []


def test_one_line_that_everybody_fights_for_goes_on_without_upkeep(store):
    ids = put_many(store, 300, key="k")
    went = []

    def work():
        worker = new_worker(store, 1e6)
        for _ in as_long_as(lambda: store.backlog().open):
            claims = claim(store, 10, worker=worker).claims
            went.extend(one.id for one in claims)
            assert store.settle([finished(one) for one in claims]) == ()

    together(*[work] * WORKERS)
    assert went == ids


def test_lines_survive_acts_and_failures_in_their_middle(store):
    for i in range(30):
        store.put([job(f"{key}-{i}", key=f"key-{key}") for key in range(4)])
    stop = threading.Event()

    def cancel():
        for i in range(1, 30, 3):
            for key in range(4):
                store.change(seen(store, f"{key}-{i}"), Event.CANCEL, "anna")
        stop.set()

    def work():
        worker = new_worker(store, 1e6)
        for _ in as_long_as(lambda: store.backlog().open or not stop.is_set()):
            claims = claim(store, 3, worker=worker).claims
            ends = [finished(one) if one.claims > 1 or one.seq % 2 else deferred(one) for one in claims]
            assert store.settle(ends) == ()

    together(cancel, *[work] * 4)
    assert {one.state for one in find_all(store)} <= {State.DONE, State.CANCELLED}
    assert left_over(store) == []


def test_a_limit_holds_among_eight_workers_and_is_used(store):
    put_many(store, 400)
    lock, flying, most, done = threading.Lock(), set(), [0], []
    pace = ScriptedPace({QUEUE: at_most(5)})

    def work():
        worker, held = new_worker(store, 1e6), []
        for _ in as_long_as(lambda: store.backlog().open):
            with lock:
                flying.difference_update(one.id for one in held)
            held = claim(store, 2, worker=worker, pace=pace, settling=[finished(one) for one in held]).claims
            with lock:
                flying.update(one.id for one in held)
                most[0] = max(most[0], len(flying))
            assert most[0] <= 5
            done.extend(one.id for one in held)

    together(*[work] * WORKERS)
    assert Counter(done) == Counter(f"job-{i}" for i in range(400))
    assert most[0] > 2


def test_a_rate_holds_by_the_servers_own_clock(store):
    put_many(store, 120)
    pace, starts = Pacer({QUEUE: Limits(Rate(50, 1.0))}), []

    def work():
        worker = new_worker(store, 1e6)
        for _ in as_long_as(lambda: len(starts) < 120):
            claims = claim(store, 5, worker=worker, pace=pace).claims
            starts.extend(max(one.start_at, one.claimed_at) for one in claims)
            store.settle([finished(one) for one in claims])

    together(*[work] * 4)
    assert max(sum(start <= other < start + 1.0 for other in starts) for start in starts) <= 50


def test_lapses_race_late_settles_and_every_job_ends_once(store):
    ids = put_many(store, 240, crashes=1000)
    counted = []

    def work(retiring):
        for _ in as_long_as(lambda: store.backlog().open):
            worker = new_worker(store, 1e6)
            claims = claim(store, 3, worker=worker).claims + claim(store, 1, worker=worker, alone=True).claims
            if retiring:
                store.retire(worker)
            ends = [finished(one) for one in claims]
            refused = {one.claim.id for one in store.settle(ends)}
            counted.extend(one.id for one in claims if one.id not in refused)

    def keep_up():
        for _ in as_long_as(lambda: store.backlog().open):
            upkeep(store)

    together(*[lambda: work(True)] * 3, *[lambda: work(False)] * 2, keep_up, keep_up)
    assert Counter(counted) == Counter(ids)
    assert {read(store, id).history[-1].event for id in ids} == {Event.FINISH}
    assert store.backlog().done == 240


def test_acts_race_settles_and_exactly_one_of_them_counts(store):
    ids = put_many(store, 150, key=None)
    settled, cancelled = [], []

    def work():
        worker = new_worker(store, 1e6)
        for _ in as_long_as(lambda: store.backlog().open):
            claims = claim(store, 4, worker=worker).claims
            refused = {one.claim.id for one in store.settle([finished(one) for one in claims])}
            settled.extend(one.id for one in claims if one.id not in refused)

    def press(these):
        cancelled.extend(id for id in these if act(store, Event.CANCEL, id) == ())

    together(work, work, lambda: press(ids[::-1]), lambda: press(ids[::2]))
    assert Counter(settled + cancelled) == Counter(ids)
    assert cancelled
    assert {id for id in ids if read(store, id).state is State.CANCELLED} == set(cancelled)


def test_acts_on_crossing_lines_end_all_the_same(store):
    """Two people cancel the heads and the seconds of each other's lines: a deadlock is tried again."""
    for turn in range(15):
        store.put([job(f"{turn}-{name}", key=f"{turn}-{name[0]}") for name in ("a1", "a2", "b1", "b2", "a3", "b3")])
        together(
            lambda turn=turn: act(store, Event.CANCEL, f"{turn}-a1", f"{turn}-b2"),
            lambda turn=turn: act(store, Event.CANCEL, f"{turn}-b1", f"{turn}-a2"),
        )
    claimed = {one.id for one in claim(store, 100).claims}
    assert claimed == {f"{turn}-{name}" for turn in range(15) for name in ("a3", "b3")}


def test_settles_with_crossed_jobs_do_not_deadlock(store):
    put_many(store, 200)
    claims = claim(store, 200).claims
    refused = []

    def settle(some):
        refused.extend(store.settle([deferred(one, kind=Kind.FAILED, delay=60) for one in some]))

    others = [PostgresStore(store.url) for _ in range(2)]
    try:
        together(
            lambda: settle(claims),
            *[
                lambda other=other: refused.extend(other.settle([deferred(one, delay=60) for one in claims[::-1]]))
                for other in others
            ],
        )
    finally:
        for other in others:
            other.close()
    assert len(refused) == 400
    assert store.backlog().queues[0].retrying == 200


@pytest.mark.parametrize("key", [None, "k"])
def test_processes_share_the_work(store, key):
    ids = put_many(store, 400, key=key and "k")
    order = msgspec.json.encode(
        Order(Opener("treppe.store.postgres:PostgresStore", (store.url,)), "work_until_empty", n=7)
    )
    code = [sys.executable, "-c", "from treppe.testing.contract.child import main; main()"]
    told = []
    for _ in as_long_as(lambda: store.backlog().open):
        children = [subprocess.Popen(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        for child in children:
            child.stdin.write(order.decode() + "\n")
            child.stdin.flush()
        told += [line.strip() for child in children for line in child.communicate()[0].splitlines()]
    assert Counter(told) == Counter(f"done {id}" for id in ids)
    ends = sorted(find_all(store), key=lambda one: one.ended_at)
    assert key is None or [one.seq for one in ends] == sorted(one.seq for one in ends)


def left_over(store):
    """Jobs that wait behind a key that nobody holds."""
    return [one.id for one in find_all(store, Filter((State.WAITING,))) if one.behind]
