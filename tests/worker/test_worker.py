"""Claim → run → settle in one process."""

import asyncio
import logging
import threading
import time
from collections import Counter
from itertools import islice, pairwise

import pytest

from tests.worker.support import (
    OK,
    a_worker,
    ask,
    claimed,
    in_loop,
    lapse,
    numbered,
    put,
    states,
    sync,
    until,
    working,
)
from treppe.job import Event, Kind, NewJob, Outcome, Repeat, Settlement
from treppe.policy.pace import Limits, Pacer
from treppe.worker import Handler

BOTH = pytest.mark.parametrize("kind", [sync, in_loop])


def running(store) -> int:
    return store.backlog().total("running")


def noting(ran: list[str], kind):
    """A handler of this kind that notes which job it ran."""
    if kind is sync:
        return sync(lambda run: ran.append(run.claim.id))

    async def note(run):
        ran.append(run.claim.id)

    return in_loop(note)


@BOTH
def test_every_job_runs_once(store, kind):
    ran: list[str] = []
    ids = numbered(700)
    with working(store, {"task": noting(ran, kind)}) as worker:
        put(store, *ids)
        until(lambda: store.backlog().done == 700)
    assert sorted(ran) == sorted(ids)
    assert (worker.tally.done, worker.tally.refused) == (700, 0)


def test_threads_and_the_loop_work_side_by_side(store):
    meeting = threading.Barrier(2, timeout=10)

    async def async_side(run):
        await asyncio.to_thread(meeting.wait)

    put(store, "plain")
    put(store, "async", task="async", queue="other")
    with working(store, {"task": sync(lambda run: meeting.wait() and None), "async": in_loop(async_side)}):
        until(lambda: states(store, "plain", "async") == {"done"})


@BOTH
def test_unknown_tasks_are_never_claimed(store, kind):
    put(store, "known")
    put(store, "unknown", task="nobody's")
    with working(store, {"task": noting([], kind)}):
        until(lambda: states(store, "known") == {"done"})
        put(store, "more")
        until(lambda: states(store, "more") == {"done"})
    job = store.get("unknown")
    assert (job.state, job.claims, job.charged) == ("waiting", 0, 0)


def test_a_worker_may_be_kept_to_some_queues(store):
    put(store, "mine", queue="mine")
    put(store, "theirs", queue="theirs")
    with working(store, {"task": sync(lambda run: None)}, queues=["mine"]):
        until(lambda: states(store, "mine") == {"done"})
        put(store, "mine-2", queue="mine")
        until(lambda: states(store, "mine-2") == {"done"})
    assert states(store, "theirs") == {"waiting"}


def test_short_jobs_lie_ready_but_never_those_that_must_not_be_repeated(store):
    """What is claimed but not running would be unclear after a kill, although nothing happened."""
    go, started = threading.Event(), []

    def hang(run):
        started.append(run.claim.id)
        go.wait(10)

    put(store, *numbered(300, "warm-up"))
    with working(store, {"task": sync(lambda run: None), "hang": sync(hang)}, threads=2):
        until(lambda: store.backlog().done == 300)
        ask(store, *numbered(10, "ask"), task="hang")
        until(lambda: len(started) == 2)
        for _ in range(20):
            assert running(store) == 2
        assert store.backlog().total("waiting") == 8
        go.set()
        until(lambda: store.backlog().done == 310)
    assert len(started) == 10


def test_a_worker_full_of_stuck_jobs_gives_back_what_lies_ready_and_takes_no_more_of_it(store, monkeypatch):
    monkeypatch.setattr("treppe.worker.threads.STALE", 0.1)
    go, rounds = threading.Event(), []
    put(store, *numbered(300, "warm-up"))
    handlers = {"task": sync(lambda run: None), "hang": sync(lambda run: go.wait(20) and None)}
    with working(store, handlers, threads=2, chores=lambda: rounds.append(1) or 0.01):
        until(lambda: store.backlog().done == 300)
        put(store, *numbered(30), task="hang")
        until(lambda: running(store) == 2 and any(store.get(id).history for id in numbered(30)))
        seen = len(rounds)
        until(lambda: len(rounds) > seen + 50)
        assert running(store) == 2
        assert max(len(store.get(id).history) for id in numbered(30)) == 1
        go.set()
        until(lambda: store.backlog().done == 330)


def test_a_safe_job_beside_one_that_must_not_be_repeated_may_lie_ready(store):
    go = threading.Event()
    put(store, *numbered(300, "warm-up"))
    with working(store, {"task": sync(lambda run: None), "hang": sync(lambda run: go.wait(10) and None)}, threads=2):
        until(lambda: store.backlog().done == 300)
        put(store, *numbered(10), task="hang")
        until(lambda: running(store) > 2)
        go.set()
        until(lambda: store.backlog().done == 310)


@BOTH
@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), TimeoutError("its own")]
)
def test_a_handler_that_raises_is_a_failure_and_the_worker_goes_on(store, kind, error):
    def fail(run):
        raise error

    async def fail_in_loop(run):
        raise error

    put(store, "bad", task="bad")
    with working(store, {"bad": kind(fail if kind is sync else fail_in_loop), "task": noting([], kind)}):
        until(lambda: store.get("bad").history)
        put(store, "good")
        until(lambda: states(store, "good") == {"done"})
    (line, *_) = store.get("bad").history
    assert (line.event, line.kind) == (Event.DEFER, Kind.FAILED)
    assert store.get("bad").run_at > line.finished_at + 0.5, "it is not tried again at once"


@BOTH
@pytest.mark.parametrize(
    "strange",
    [
        "text",
        7,
        Outcome("strange"),  # type: ignore[arg-type]
        Outcome(Kind.OK, error=7),  # type: ignore[arg-type]
        Outcome(Kind.OK, result={"a": 1}),  # type: ignore[arg-type]
        Outcome(Kind.OK, detail=object()),  # type: ignore[arg-type]
        Outcome(Kind.FAILED, after="soon"),  # type: ignore[arg-type]
        Outcome(Kind.SNOOZED, after=float("nan")),
    ],
    ids=repr,
)
def test_an_outcome_that_cannot_be_ends_its_job_and_not_the_worker(store, kind, strange):
    def plain(run):
        return strange

    async def awaited(run):
        return strange

    put(store, "bad", task="bad")
    with working(store, {"bad": kind(plain if kind is sync else awaited), "task": noting([], kind)}):
        until(lambda: store.get("bad").history)
        put(store, "good")
        until(lambda: states(store, "good") == {"done"})
        until(lambda: states(store, "bad") != {"running"})


def test_a_thread_that_takes_too_long_is_abandoned_and_replaced(store):
    go = threading.Event()
    put(store, "slow", task="slow")
    with working(store, {"slow": sync(lambda run: go.wait(10) and None, timeout=0.1), "task": sync(lambda run: None)},
                 threads=1) as worker:  # fmt: skip
        until(lambda: store.get("slow").history)
        put(store, *numbered(5))
        until(lambda: store.backlog().done == 5)
        go.set()  # its late return counts for nothing
        put(store, *numbered(5, "later"))
        until(lambda: store.backlog().done == 10)
        assert worker.tally.refused == 0
    (line,) = store.get("slow").history
    assert (line.kind, line.error) == (Kind.FAILED, "took longer than its time limit of 0.1 s")
    assert states(store, "slow") == {"waiting"}


def test_a_thread_that_takes_too_long_with_what_must_not_be_repeated_leaves_it_unclear(store):
    go = threading.Event()
    ask(store, "slow")
    with working(store, {"task": sync(lambda run: go.wait(10) and None, timeout=0.1)}):
        until(lambda: states(store, "slow") == {"unclear"})
        go.set()
    assert states(store, "slow") == {"unclear"}


def test_a_coroutine_that_takes_too_long_is_cancelled(store):
    cancelled = []

    async def slow(run):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(run.claim.id)
            raise

    put(store, "slow")
    with working(store, {"task": in_loop(slow, timeout=0.05)}, loop_jobs=1):
        until(lambda: store.get("slow").history)
    assert cancelled == ["slow"]
    assert store.get("slow").history[0].error == "took longer than its time limit of 0.05 s"


def test_a_coroutine_that_will_not_be_cancelled_is_given_up_and_replaced(store):
    go = asyncio.Event()
    loops = []

    async def stubborn(run):
        loops.append(asyncio.get_running_loop())
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    put(store, "stubborn", task="stubborn")
    with working(store, {"stubborn": in_loop(stubborn, timeout=0.05), "task": noting([], in_loop)}, loop_jobs=1):
        try:
            until(lambda: store.get("stubborn").history, 5)
            put(store, "good")
            until(lambda: states(store, "good") == {"done"}, 5)
        finally:
            loops[0].call_soon_threadsafe(go.set)


def test_time_limits_hold_while_the_store_is_away(store):
    """A thread that hangs is given up although no claim comes through."""
    go = threading.Event()
    put(store, "slow")
    with working(store, {"task": sync(lambda run: go.wait(10) and None, timeout=0.1)}) as worker:
        until(lambda: running(store) == 1)
        broken = store.claim
        store.claim = lambda *_: (_ for _ in ()).throw(ConnectionError("away"))
        until(lambda: store.get("slow").history)
        store.claim = broken
        go.set()
        until(lambda: worker.tally.deferred == 1)


def test_a_worker_stopped_before_it_began_does_nothing(store):
    put(store, "job")
    worker = a_worker(store, {"task": sync(lambda run: None)})
    worker.stop()
    assert worker.stopping
    assert worker.run().done == 0
    assert states(store, "job") == {"waiting"}


@BOTH
def test_what_is_not_done_within_the_grace_is_given_back(store, kind):
    go, started = threading.Event(), []

    def hang(run):
        started.append(run.claim.id)
        go.wait(30)

    async def hang_in_loop(run):
        started.append(run.claim.id)
        await asyncio.sleep(30)

    put(store, "safe")
    ask(store, "ask")
    with working(store, {"task": kind(hang if kind is sync else hang_in_loop)}, grace=0.1):
        until(lambda: len(started) == 2)
    go.set()
    safe = store.get("safe")
    assert (safe.state, safe.charged, safe.error) == ("waiting", 0, "the worker was stopped")
    assert states(store, "ask") == {"unclear"}


def test_stopped_it_gives_back_what_lies_ready_at_once(store):
    go, short = threading.Event(), iter(numbered(10_000, "short"))
    with working(store, {"task": sync(lambda run: None), "hang": sync(lambda run: go.wait(10) and None)},
                 threads=1) as worker:  # fmt: skip
        until(lambda: store.backlog().open == 0 and (worker._threads.room() > 10 or put(store, *islice(short, 100))))
        before = store.backlog().done
        put(store, *numbered(20), task="hang")
        until(lambda: running(store) > 2)
        worker.stop()
        until(lambda: running(store) == 1)
        assert store.backlog().total("waiting") == 19
        go.set()
    assert store.backlog().done == before + 1


def test_a_loop_that_is_blocked_does_not_keep_the_worker_from_its_end(store):
    go = threading.Event()

    async def block(run):
        go.wait(8)

    put(store, "blocks")
    put(store, "waits", task="plain")
    worker = a_worker(store, {"task": in_loop(block), "plain": sync(lambda run: None)}, grace=0.1)
    engine = threading.Thread(target=worker.run)
    engine.start()
    until(lambda: running(store) == 1 and states(store, "waits") == {"done"})
    worker.stop()
    until(lambda: states(store, "blocks") == {"waiting"})
    go.set()
    engine.join(10)
    assert not engine.is_alive()


def test_a_late_settle_of_what_somebody_else_has_is_refused_and_told(store, caplog):
    go = threading.Event()
    put(store, "job")
    with working(store, {"task": sync(lambda run: go.wait(10) and None)}) as worker:
        until(lambda: running(store) == 1)
        store.retire(worker._lease.worker)  # as if its lease had run out
        lapse(store, "job")
        with caplog.at_level(logging.WARNING, "treppe.worker"):
            claims = until(lambda: take_alone(store))
            go.set()
            until(lambda: worker.tally.refused == 1)
    assert 'job "job" was taken back meanwhile; its end (finish) does not count' in caplog.text
    assert states(store, "job") == {"running"}
    assert store.settle([Settlement(claims[0], Event.FINISH, Kind.OK)]) == ()


def take_alone(store):
    from tests.worker.support import FREE
    from treppe.store.protocol import Wanted

    store.enlist(1, "the other", 3600)
    return store.claim(Wanted(1, 1, 1, frozenset({"task"}), alone=True), FREE).claims


def test_chores_come_when_they_want_to_be_called(store):
    """At once while there is more, and then after so many seconds: not only with the next look for jobs."""
    waits, calls = [0.0] * 50 + [0.05] * 5, []

    def chores() -> float:
        calls.append(time.monotonic())
        return waits.pop(0) if waits else 3600.0

    with working(store, {"task": sync(lambda run: None)}, chores=chores):
        until(lambda: len(calls) == 56, 5)
    assert all(later - sooner >= 0.05 for sooner, later in pairwise(calls[50:]))
    assert calls[55] - calls[0] < 4.0  # an idle worker looks for jobs once a second


def test_chores_that_fail_are_trouble_and_the_worker_goes_on(store):
    trouble = []

    def chores() -> float:
        raise OSError("disk")

    with working(store, {"task": sync(lambda run: None)}, chores=chores, on_trouble=lambda: trouble.append(1)):
        until(lambda: trouble)
        put(store, "job")
        until(lambda: states(store, "job") == {"done"})


# Draining


def test_a_drain_ends_when_nothing_is_due_any_more(store):
    put(store, *numbered(50))
    put(store, "later", delay=3600)
    worker = a_worker(store, {"task": sync(lambda run: None)})
    assert worker.drain(10).done == 50
    assert worker.next_in == pytest.approx(3600, abs=60)


def test_a_drain_of_nothing_ends_at_once(store):
    began = time.monotonic()
    assert a_worker(store, {"task": sync(lambda run: None)}).drain(30).done == 0
    assert a_worker(store, {}).drain(30).done == 0
    assert time.monotonic() - began < 5


def test_a_drain_waits_for_what_becomes_due_within_its_budget(store):
    put(store, "soon", delay=0.1)
    assert a_worker(store, {"task": sync(lambda run: None)}).drain(10).done == 1


def test_a_drain_works_off_suspects_too(store):
    put(store, *numbered(3))
    claimed(store, 3, lease=0.05)
    lapse(store, *numbered(3))
    put(store, "other")
    assert a_worker(store, {"task": sync(lambda run: None)}).drain(10).done == 4


def test_a_drain_ends_with_its_budget(store):
    """Jobs that run then come to their end; nothing new is begun."""
    put(store, *numbered(100))
    began = time.monotonic()
    worker = a_worker(store, {"task": sync(lambda run: threading.Event().wait(0.05) and None, timeout=0.1)}, threads=1)
    tally = worker.drain(0.5)
    assert 3 <= tally.done <= 20
    assert time.monotonic() - began < 3
    assert running(store) == 0
    assert store.backlog().total("waiting") == 100 - tally.done


def test_a_drain_claims_only_what_the_rest_of_its_budget_can_carry(store):
    put(store, "long", task="long")
    put(store, "slow", task="slow")
    put(store, "short", delay=0.3)
    handlers = {
        "long": sync(lambda run: None, timeout=3600),  # would never fit: it goes while half of the budget is left
        "slow": sync(lambda run: None, timeout=0.05),
        "task": sync(lambda run: put(store, "too-long", task="long"), timeout=0.01),
    }
    tally = a_worker(store, handlers).drain(0.5)
    assert tally.done == 3
    assert states(store, "too-long") == {"waiting"}


def test_a_drain_of_a_held_queue_ends(store):
    pacer = Pacer({"q": Limits(concurrent=1)})
    put(store, "holds", "waits")
    store.enlist(1, "other", 3600)
    from treppe.store.protocol import Wanted

    assert len(store.claim(Wanted(1, 1, 1, frozenset({"task"})), pacer).claims) == 1
    began = time.monotonic()
    assert a_worker(store, {"task": sync(lambda run: None)}, pacer).drain(5).done == 0
    assert time.monotonic() - began < 5
    assert states(store, "waits") == {"waiting"}


def test_two_drains_at_once_do_each_job_once(store):
    ran: list[str] = []
    put(store, *numbered(400))
    workers = [a_worker(store, {"task": sync(lambda run: ran.append(run.claim.id))}) for _ in range(2)]
    threads = [threading.Thread(target=worker.drain, args=(20,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(ran).most_common(1)[0][1] == 1
    assert sum(worker.tally.done for worker in workers) == len(ran) == 400


def test_a_handler_may_be_asked_for_its_notes(store):
    def note(run):
        assert run.note("seen", b"1")
        return Outcome(Kind.OK, result=b'"noted"')

    store.put([NewJob("job", "task", "q", repeat=Repeat.ASK)])
    with working(store, {"task": Handler(note)}):
        until(lambda: states(store, "job") == {"done"})
    assert (store.notes("job"), store.get("job").result) == ({"seen": b"1"}, b'"noted"')
    assert OK.acted
