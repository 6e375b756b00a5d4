"""The pace of a queue and the order of a key hold over several workers."""

import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from itertools import pairwise

import pytest

from tests.worker.support import in_loop, numbered, put, sync, until, working
from treppe.config import Rate
from treppe.job import Kind, Outcome
from treppe.policy.pace import Limits, Pacer
from treppe.worker import Handler

BOTH = pytest.mark.parametrize("kind", [sync, in_loop])


class Diary:
    """When which job ran, as the handlers saw it."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.order: dict[str, list[str]] = defaultdict(list)
        self.most = 0
        self._running = 0
        self._lock = threading.Lock()

    def note(self, run, seconds: float = 0.0) -> None:
        with self._lock:
            self.starts.append(time.monotonic())
            self.order[run.claim.key].append(run.claim.id)
            self._running += 1
            self.most = max(self.most, self._running)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.001)
        with self._lock:
            self._running -= 1

    def handler(self, kind, seconds: float = 0.0) -> Handler:
        if kind is sync:
            return sync(lambda run: self.note(run, seconds))

        async def note(run):
            self.note(run, seconds)

        return in_loop(note)


def two_workers(store, handlers, pacer):
    """Two of them on one store."""
    stack = ExitStack()
    for _ in range(2):
        stack.enter_context(working(store, handlers, pacer))
    return stack


@BOTH
def test_a_rate_holds_over_two_workers(store, kind):
    """Never more than N grants in any window of W, nobody starts before its grant, and all of it is used."""
    pacer = Pacer({"q": Limits(Rate(20, 0.5))})
    granted: list[float] = []
    late: list[float] = []

    def look(run):
        late.append(store.now() - run.claim.start_at)
        granted.append(run.claim.start_at)

    async def look_in_loop(run):
        look(run)

    put(store, *numbered(35))
    with two_workers(store, {"task": kind(look if kind is sync else look_in_loop)}, pacer):
        until(lambda: store.backlog().done == 35)
    starts = sorted(granted)
    for i, start in enumerate(starts):
        assert len([other for other in starts[i:] if other < start + 0.5]) <= 20
    assert min(late) > -0.002
    assert starts[-1] - starts[0] < 3.0


@BOTH
def test_a_paced_job_never_starts_early(store, kind):
    pacer = Pacer({"q": Limits(Rate(50, 1.0))})
    early: list[float] = []

    def look(run):
        early.append(store.now() - run.claim.start_at)

    async def look_in_loop(run):
        look(run)

    put(store, *numbered(25))
    with working(store, {"task": kind(look if kind is sync else look_in_loop)}, pacer):
        until(lambda: store.backlog().done == 25)
    assert min(early) > -0.002


@BOTH
def test_a_start_that_comes_late_shifts_the_later_ones(store, kind):
    """The first job holds the only hand for a while: those that were granted meanwhile do not start in a bunch."""
    pacer, starts = Pacer({"q": Limits(Rate(20, 1.0))}), []

    def look(run):
        starts.append(time.monotonic())
        while len(starts) == 1 and time.monotonic() < starts[0] + 0.4:
            time.sleep(0.001)

    async def look_in_loop(run):
        look(run)

    put(store, *numbered(12))
    with working(store, {"task": kind(look if kind is sync else look_in_loop)}, pacer, threads=1, loop_jobs=1):
        until(lambda: store.backlog().done == 12)
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert gaps[0] >= 0.4
    assert min(gaps[1:]) > 0.02  # granted 0.05 s apart; a busy machine starts a thread late


@BOTH
def test_concurrency_holds_over_two_workers(store, kind):
    pacer, diary = Pacer({"q": Limits(concurrent=3)}), Diary()
    put(store, *numbered(60))
    with two_workers(store, {"task": diary.handler(kind, 0.005)}, pacer):
        until(lambda: store.backlog().done == 60)
    assert diary.most <= 3
    assert diary.most > 1 or kind is in_loop


@BOTH
def test_an_order_key_holds_over_two_workers(store, kind):
    diary = Diary()
    expected: dict[str, list[str]] = defaultdict(list)
    for i in range(120):
        key = f"customer-{i % 7}"
        put(store, f"job-{i}", key=key)
        expected[key].append(f"job-{i}")
    with two_workers(store, {"task": diary.handler(kind, 0.001)}, Pacer({})):
        until(lambda: store.backlog().done == 120)
    assert diary.order == expected


def test_a_retry_keeps_its_place_in_the_line_of_its_key(store):
    ran: list[str] = []

    def run(job):
        ran.append(job.claim.id)
        again = job.claim.id == "first" and ran.count("first") < 3
        return Outcome(Kind.SNOOZED, "not yet", after=0.02) if again else None

    put(store, "first", "second", "third", key="k")
    with two_workers(store, {"task": sync(run)}, Pacer({})):
        until(lambda: store.backlog().done == 3)
    assert ran == ["first", "first", "first", "second", "third"]


def test_a_throttled_queue_is_held_for_all_workers(store):
    """What was claimed before the 429 came is given back; nothing starts until the hold is over."""
    pacer, answers = Pacer({"q": Limits(concurrent=2)}), []

    def run(job):
        answers.append((time.monotonic(), job.claim.probe))
        return Outcome(Kind.THROTTLED, "429", after=1.0) if len(answers) <= 2 else None

    put(store, *numbered(20))
    with two_workers(store, {"task": sync(run)}, pacer):
        until(lambda: store.backlog().done == 20)
    first_after = answers[2]
    assert first_after[1], "a probe comes first"
    assert first_after[0] - answers[1][0] >= 0.95
    assert {store.get(id).charged for id in numbered(20)} == {0}
