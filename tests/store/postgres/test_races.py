"""The races of order keys and settles, one step at a time: two transactions of our own, each held where it hurts."""

import threading

import pytest

from treppe.job import Event, State
from treppe.store.postgres import acts, settling
from treppe.store.postgres.database import SQL
from treppe.store.postgres.scanning import START, Marks
from treppe.store.protocol import Seen
from treppe.testing.contract.base import until
from treppe.testing.contract.verbs import (
    ALICE,
    QUEUE,
    TASK,
    act,
    claim,
    claim_ids,
    claim_one,
    deferred,
    finished,
    job,
    new_worker,
    put,
    put_many,
    read,
    state,
    upkeep,
)


class Held:
    """A piece of work in a transaction that ends only when it is told to."""

    def __init__(self, store, work):
        self._go, self._did = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: store._database.write(lambda tx: self._run(tx, work)))
        self._thread.start()

    def _run(self, tx, work):
        work(tx)
        self._did.set()
        assert self._go.wait(30)

    def has_worked(self):
        assert self._did.wait(30)
        return self

    def end(self):
        self._go.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.fixture
def hold(store):
    """Begin such work; what is still held in the end is let go."""
    helds = []

    def begin(work):
        helds.append(Held(store, work))
        return helds[-1].has_worked()

    yield begin
    for held in helds:
        held.end()


def look(tx):
    """What a claim does first: it locks the due jobs."""
    rows = tx.rows(SQL["due_look"], (QUEUE, 2, *START, [TASK], 0, 2, 100))
    return [row[1] for row in rows if row[1] is not None]


def park(tx):
    """What it does next: it judges who leads."""
    return [seq for (seq,) in tx.rows(SQL["key_judge"], (look(tx),))]


def in_background(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def waits_for_a_lock(store):
    return lambda: store._database.once("SELECT true FROM pg_stat_activity WHERE wait_event_type = 'Lock' LIMIT 1")


def test_a_head_that_ends_while_its_next_is_being_parked_wakes_it_after_all(store, hold):
    put(store, "a", "b", key="k")
    a = claim_one(store)
    claiming = hold(park)
    settle = in_background(lambda: store.settle([finished(a)]))
    until(waits_for_a_lock(store))
    claiming.end()
    settle.join(30)
    assert claim_ids(store) == ["b"]


def test_a_head_that_ends_before_its_next_is_judged_is_seen_as_ended(store):
    """The lock is taken first and the head is looked for afterwards: a picture from before would park for ever."""
    put(store, "a", "b", key="k")
    a = claim_one(store)
    looked = threading.Event()
    ended = threading.Event()
    leading = []

    def work(tx):
        seqs = look(tx)
        looked.set()
        assert ended.wait(30)
        leading.extend(seq for (seq,) in tx.rows(SQL["key_judge"], (seqs,)))

    claiming = in_background(lambda: store._database.write(work))
    assert looked.wait(30)
    for table in ("live", "slot"):
        store._database.write(lambda tx, table=table: tx.run(f"DELETE FROM treppe.{table} WHERE seq = $1", (a.seq,)))
    ended.set()
    claiming.join(30)
    assert leading == [read(store, "b").seq]


def test_a_head_that_is_cancelled_while_the_one_before_ends_is_followed_by_the_next(store, hold):
    put(store, "a", "b", "c", key="k")
    a = claim_one(store)
    claim_ids(store)
    b = Seen("b", 0)
    cancelling = hold(lambda tx: acts.change(tx, [b], Event.CANCEL, "anna", ""))
    settle = in_background(lambda: store.settle([finished(a)]))
    until(waits_for_a_lock(store))
    cancelling.end()
    settle.join(30)
    assert state(store, "b") is State.CANCELLED
    assert claim_ids(store) == ["c"]


def test_nobody_claims_what_another_claim_has_locked(store, hold):
    ids = put_many(store, 10)
    claiming = hold(look)
    put(store, "other")
    assert claim_ids(store) == ["other"]
    claiming.end()
    assert claim_ids(store) == ids


def test_a_job_behind_a_locked_head_does_not_overtake_it(store, hold):
    put(store, "a", key="k")
    claiming = hold(look)
    put(store, "b", key="k")
    assert claim_ids(store) == []
    claiming.end()
    assert claim_ids(store) == ["a"]


def test_a_settle_of_what_is_being_taken_back_waits_and_is_judged_by_what_was_written(store):
    put(store, "a")
    a = claim_one(store)
    taking = Held(
        store, lambda tx: tx.run("UPDATE treppe.live SET running = false, lapsed = 1 WHERE seq = $1", (a.seq,))
    )
    taking.has_worked()
    refused = []
    settle = in_background(lambda: refused.extend(store.settle([finished(a)])))
    until(waits_for_a_lock(store))
    taking.end()
    settle.join(30)
    assert (refused, state(store, "a")) == ([], State.DONE)


def test_a_key_taken_by_a_transaction_we_could_not_see_is_not_taken_twice(store):
    """Two that both believe to lead (one came due earlier, but was committed later): the unique slot decides."""
    put(store, "a", key="k")
    looked, taken, got = threading.Event(), threading.Event(), []

    def work(tx):
        seqs = look(tx)
        looked.set()
        assert taken.wait(30)
        got.extend(tx.rows(SQL["claim_take"], (seqs, ALICE, 1, False, seqs)))

    claiming = in_background(lambda: store._database.write(work))
    assert looked.wait(30)
    store.put([job("earlier", key="k", at=store.now() - 60)])
    assert claim_ids(store) == ["earlier"]
    taken.set()
    claiming.join(30)
    assert (got, claim_ids(store)) == ([], [])
    assert read(store, "a").behind == "earlier"


def test_a_worker_is_not_forgotten_while_its_claim_is_under_way(store):
    """Else its jobs would belong to somebody whom nobody looks for any more."""
    put(store, "a")
    worker = new_worker(store, 1e6)
    begun, kept_up = threading.Event(), threading.Event()

    def work(tx):
        assert tx.rows(SQL["claim_heads"], (worker, [TASK], True))
        begun.set()
        assert kept_up.wait(30)
        assert tx.rows(SQL["claim_take"], (look(tx), worker, 1, False, []))

    claiming = in_background(lambda: store._database.write(work))
    assert begun.wait(30)
    store.retire(worker)
    assert upkeep(store).lapsed == 0
    kept_up.set()
    claiming.join(30)
    assert upkeep(store).lapsed == 1


def test_a_batch_of_failures_with_successes_locks_in_one_order(store):
    put_many(store, 60)
    claims = claim(store, 60).claims
    ends = [deferred(one, delay=60) if i % 3 else finished(one) for i, one in enumerate(claims)]
    asking = in_background(lambda: act(store, Event.ASK_CANCEL, *[one.id for one in claims[::-1]]))
    assert store._database.write(lambda tx: settling.settle(tx, ends)) == []
    asking.join(30)
    assert {state(store, one.id) for one in claims} <= {State.DONE, State.WAITING, State.CANCELLED}


LANE = ("work", 2, frozenset({TASK}))


class TestMarks:
    """Where a scan begins."""

    def test_quick_sweeps_make_no_mark(self):
        marks = Marks()
        for i in range(100):
            marks.keep(LANE, START, (float(i), i), 0.001, 10)
        assert (marks.start(LANE), marks.left(LANE)) == (START, None)

    def test_one_slow_sweep_among_quick_ones_makes_none(self):
        marks = Marks()
        for i in range(100):
            marks.keep(LANE, START, (float(i), i), 0.5 if i % 5 == 0 else 0.0001, 10)
        assert marks.start(LANE) == START

    def test_slow_sweeps_make_a_mark_that_moves_on_with_what_is_found(self):
        marks = Marks()
        for i in range(20):
            marks.keep(LANE, START, (float(i), 7), 0.5, 10)
        assert marks.start(LANE) == (19.0, 6)
        marks.keep(LANE, (19.0, 6), (25.0, 3), 0.0001, 10)
        assert marks.start(LANE) == (25.0, 2)
        marks.keep(LANE, (25.0, 2), (21.0, 1), 0.0001, 10)
        assert marks.start(LANE) == (25.0, 2)

    def test_a_mark_is_given_up_for_a_sweep_after_a_while(self, monkeypatch):
        marks, now = Marks(), [0.0]
        monkeypatch.setattr("time.perf_counter", lambda: now[0])
        for _ in range(20):
            marks.keep(LANE, START, (1.0, 1), 0.1, 10)
        assert marks.left(LANE) == pytest.approx(2.0)
        now[0] = 2.1
        assert marks.start(LANE) == START
        marks.keep(LANE, START, (1.0, 1), 0.0001, 10)
        assert marks.left(LANE) is None

    def test_a_long_batch_may_take_longer(self):
        marks = Marks()
        for _ in range(20):
            marks.keep(LANE, START, (1.0, 1), 0.008, 500)
        assert marks.start(LANE) == START
