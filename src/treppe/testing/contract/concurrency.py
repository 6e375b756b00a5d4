"""Threads: many of them on one store neither lose, double, nor overtake anything."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable

from treppe.job import Claim, Event, Placed, Settlement, State
from treppe.store.bell import Bell
from treppe.store.protocol import Filter, Pace, Store
from treppe.testing.contract.base import Contract, as_long_as, together, until
from treppe.testing.contract.paces import FREE, ScriptedPace, at_most
from treppe.testing.contract.verbs import (
    QUEUE,
    claim,
    claim_one,
    deferred,
    event,
    find_all,
    finished,
    job,
    new_worker,
    put,
    put_many,
    read,
    state,
    upkeep,
)

PATIENCE = 15.0
PROMPT = 5.0


class Concurrency(Contract):
    """Real threads."""

    def test_four_threads_do_two_thousand_jobs_each_exactly_once(self, store: Store) -> None:
        ids = put_many(store, 2000)
        done = work_in_threads(store, 4, batch=25)
        assert Counter(done) == Counter(ids)
        assert store.backlog().done == 2000

    def test_jobs_put_while_others_are_done_are_all_done_once(self, store: Store) -> None:
        left = threading.Semaphore(4)

        def produce(name: int) -> None:
            with left:
                for i in range(100):
                    put(store, f"{name}-{i}", key=f"{i % 7}")

        def consume() -> None:
            worker = new_worker(store, 1e6)
            for _ in as_long_as(lambda: store.backlog().done < 400):
                claims = claim(store, 10, worker=worker).claims
                assert store.settle([finished(one) for one in claims]) == ()
                if not claims:
                    upkeep(store)

        together(*[lambda name=name: produce(name) for name in range(4)], consume, consume)
        assert {one.state for one in find_all(store)} == {State.DONE}
        assert len(find_all(store)) == 400

    def test_of_many_puts_of_one_id_one_is_placed(self, store: Store) -> None:
        answers: list[Placed] = []
        together(*[lambda: answers.extend(put(store, "a", payload=b"same"))] * 8)
        assert [one.duplicate for one in answers].count(False) == 1
        assert len({one.seq for one in answers}) == 1
        assert store.backlog().accepted == 1

    def test_of_many_puts_of_one_id_with_other_content_the_others_are_told(self, store: Store) -> None:
        answers: list[Placed] = []
        works = [lambda i=i: answers.extend(put(store, "a", payload=b"%d" % i)) for i in range(8)]
        together(*works)
        assert sorted(bool(one.conflict) for one in answers) == [False] + [True] * 7
        assert store.backlog().accepted == 1

    def test_batches_with_crossed_ids_place_each_once(self, store: Store) -> None:
        ids = [f"job-{i}" for i in range(50)]
        answers: list[Placed] = []
        together(
            *[lambda: answers.extend(put(store, *ids))] * 4,
            *[lambda: answers.extend(put(store, *ids[::-1]))] * 4,
        )
        assert Counter(one.id for one in answers if not one.duplicate) == Counter(ids)

    def test_one_event_from_many_threads_is_accepted_once(self, store: Store) -> None:
        answers: list[Placed] = []

        def deliver() -> None:
            answers.extend(store.put([job("shop:e:crm", event=("shop", "e"))], [event("e")]).events)

        together(*[deliver] * 8)
        assert [one.duplicate for one in answers].count(False) == 1
        assert len(find_all(store)) == 1

    def test_every_acknowledged_put_of_many_threads_is_there(
        self, store: Store, open_store: Callable[[], Store]
    ) -> None:
        def produce(name: int) -> None:
            for i in range(50):
                assert not put(store, f"{name}-{i}")[0].duplicate

        together(*[lambda name=name: produce(name) for name in range(8)])
        store.close()
        there = find_all(open_store())
        assert {one.id for one in there} == {f"{name}-{i}" for name in range(8) for i in range(50)}
        assert len({one.seq for one in there}) == 400

    def test_one_claim_settled_by_many_threads_counts_once(self, store: Store) -> None:
        put(store, "a")
        taken, refused = claim_one(store), list[Settlement]()
        works: list[Callable[[], object]] = [lambda: refused.extend(store.settle([finished(taken)]))] * 4
        works += [lambda: refused.extend(store.settle([deferred(taken, delay=60)]))] * 4
        together(*works)
        assert len(refused) == 7
        assert len(read(store, "a").history) == 1

    def test_lapses_beside_settles_end_every_job_exactly_once(self, store: Store) -> None:
        ids = put_many(store, 200, crashes=1000)
        counted: list[str] = []

        def work() -> None:
            for _ in as_long_as(lambda: store.backlog().open):
                worker = new_worker(store, 1e6)
                for alone in (False, True):
                    for one in claim(store, 3, worker=worker, alone=alone).claims:
                        counted.extend([one.id] if store.settle([finished(one)]) == () else [])

        def kill() -> None:
            for _ in as_long_as(lambda: store.backlog().open):
                for worker in {one.worker for one in claim(store, 2, worker=new_worker(store, 1e6)).claims}:
                    store.retire(worker)
                upkeep(store)

        together(work, work, kill)
        assert Counter(counted) == Counter(ids)
        for id in ids:
            ends = [line.event for line in read(store, id).history]
            assert (ends.count(Event.FINISH), ends[-1]) == (1, Event.FINISH)

    def test_no_key_runs_twice_and_none_is_overtaken(self, store: Store) -> None:
        for i in range(20):
            store.put([job(f"{key}-{i}", key=str(key)) for key in range(15)])
        lock, running, went = threading.Lock(), set(), defaultdict(list)

        def start(one: Claim) -> None:
            with lock:
                assert one.key not in running, f"two jobs of the key {one.key} run beside each other"
                running.add(one.key)
                went[one.key].append(int(one.id.split("-")[1]))

        def end(one: Claim) -> None:
            with lock:
                running.discard(one.key)

        work_in_threads(store, 4, batch=5, start=start, end=end)
        assert all(order == list(range(20)) for order in went.values())
        assert len(went) == 15

    def test_a_limit_holds_among_threads(self, store: Store) -> None:
        put_many(store, 300)
        lock, running, most = threading.Lock(), [0], [0]

        def start(one: Claim) -> None:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
                assert running[0] <= 3

        def end(one: Claim) -> None:
            with lock:
                running[0] -= 1

        pace = ScriptedPace({QUEUE: at_most(3)})
        assert len(work_in_threads(store, 4, batch=2, start=start, end=end, pace=pace)) == 300
        assert most[0] > 1

    def test_figures_read_beside_writers_never_show_a_half_written_step(self, store: Store) -> None:
        put_many(store, 200)
        seen: list[int] = []

        def watch() -> None:
            for _ in as_long_as(lambda: store.backlog().done < 200):
                told = store.backlog()
                seen.append(told.open + told.done)

        together(watch, lambda: work_in_threads(store, 2, batch=5))
        assert set(seen) <= {200}

    def test_upkeep_beside_workers_takes_nothing_from_the_living(self, store: Store) -> None:
        ids = put_many(store, 300)
        stop = threading.Event()

        def keep_up() -> None:
            for _ in as_long_as(lambda: not stop.is_set()):
                assert upkeep(store).lapsed == 0

        def work() -> None:
            try:
                assert Counter(work_in_threads(store, 2, batch=5)) == Counter(ids)
            finally:
                stop.set()

        together(keep_up, keep_up, work)

    def test_a_waiter_is_woken_by_its_bell(self, store: Store) -> None:
        bell = Bell()
        bell.ring()
        assert seconds_of(lambda: store.wait(PATIENCE, bell)) < PROMPT

    def test_a_bell_rung_meanwhile_wakes_too(self, store: Store) -> None:
        bell, waiting = Bell(), threading.Event()

        def ring() -> None:
            waiting.wait()
            bell.ring()

        def wait() -> None:
            waiting.set()
            assert seconds_of(lambda: store.wait(PATIENCE, bell)) < PROMPT

        together(wait, ring)

    def test_a_waiter_gives_up_after_its_time(self, store: Store) -> None:
        claim(store)
        assert seconds_of(lambda: store.wait(0.05, Bell())) < PROMPT

    def test_a_put_between_the_claim_and_the_wait_is_not_slept_through(self, store: Store) -> None:
        claim(store)
        put(store, "a")
        assert seconds_of(lambda: store.wait(PATIENCE, Bell())) < PROMPT

    def test_a_put_wakes_a_waiter(self, store: Store) -> None:
        claim(store)
        woken = threading.Event()

        def wait() -> None:
            assert seconds_of(lambda: store.wait(PATIENCE, Bell())) < PROMPT
            woken.set()

        together(wait, lambda: put(store, "a"))
        until(woken.is_set)
        assert state(store, "a") is State.WAITING

    def test_a_put_through_another_door_wakes_a_waiter(self, store: Store, open_store: Callable[[], Store]) -> None:
        claim(store)
        other = open_store()

        def wait() -> None:
            assert seconds_of(lambda: store.wait(PATIENCE, Bell())) < PROMPT

        together(wait, lambda: put(other, "a"))
        assert [one.id for one in find_all(store, Filter((State.WAITING,)))] == ["a"]


def work_in_threads(
    store: Store,
    threads: int,
    batch: int,
    start: Callable[[Claim], None] = lambda one: None,
    end: Callable[[Claim], None] = lambda one: None,
    pace: Pace = FREE,
) -> list[str]:
    """Claim and settle in so many threads until all is done; the ids in the order they were started."""
    started: list[str] = []
    total = store.backlog().open

    def work() -> None:
        worker = new_worker(store, 1e6)
        settling: list[Claim] = []
        for _ in as_long_as(lambda: store.backlog().open or settling):
            for one in settling:
                end(one)
            brought = claim(store, batch, worker=worker, pace=pace, settling=[finished(one) for one in settling])
            assert brought.refused == ()
            settling[:] = brought.claims
            for one in settling:
                start(one)
                started.append(one.id)

    together(*[work] * threads)
    assert len(started) == total
    return started


def seconds_of(call: Callable[[], object]) -> float:
    """How long the call takes."""
    start = time.monotonic()
    call()
    return time.monotonic() - start
