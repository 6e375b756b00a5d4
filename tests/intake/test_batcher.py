"""Group commit for an event loop, in the loop's own thread while the store is quick, else beside it."""

import asyncio
import threading
import time

import msgspec
import pytest

from treppe.errors import InvalidJob, SchemaMismatch, StoreUnavailable
from treppe.intake import Batcher, Intake
from treppe.intake.batcher import QUICK
from treppe.job import NewEvent, NewJob, Placed, Repeat
from treppe.store.protocol import Can, Put
from treppe.store.sqlite import SQLiteStore

JOB = NewJob("invoice:42", "shop.tasks.invoice", "lexware")
EVENT = NewEvent("shop", "e1", b"{}")


@pytest.fixture
def store(tmp_path):
    store = SQLiteStore(tmp_path / "jobs.db", durable=False)
    store.migrate()
    yield store
    store.close()


def job(**fields):
    return msgspec.structs.replace(JOB, **fields)


def event(**fields):
    return msgspec.structs.replace(EVENT, **fields)


class NowhereStore:
    """Remembers how it was called. It is never put to at once."""

    can = Can(within=False, many_machines=False, find=False, survives_power_loss=False, durability="none")

    def __init__(self):
        self.calls = []
        self.threads_in_order = []

    def put(self, jobs, events=()):
        self.calls.append([job.id for job in jobs])
        self.threads_in_order.append(threading.current_thread().name)
        self.may_fail(jobs)
        return Put(tuple(Placed(job.id, 1) for job in jobs), tuple(Placed(event.id, 1) for event in events))

    @property
    def threads(self):
        return set(self.threads_in_order)

    def may_fail(self, jobs):
        """Nothing goes wrong here."""


class FailingStore(NowhereStore):
    def __init__(self, error, only=None):
        super().__init__()
        self.error, self.only = error, only

    def may_fail(self, jobs):
        if self.only is None or any(job.id in self.only for job in jobs):
            raise self.error


class HeldStore(NowhereStore):
    """Its first put waits until somebody lets it go."""

    def __init__(self):
        super().__init__()
        self.began, self.let_go = threading.Event(), threading.Event()

    def may_fail(self, jobs):
        self.began.set()
        assert self.let_go.wait(10)


def batched(store, scenario, **limits):
    batcher = Batcher(Intake(store), **limits)
    try:
        return asyncio.run(scenario(batcher))
    finally:
        if isinstance(store, HeldStore):
            store.let_go.set()
        batcher.close()


async def until(condition):
    give_up = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < give_up, "it never came true"
        await asyncio.sleep(0.001)


def test_each_caller_gets_the_answer_to_his_own_entry():
    async def scenario(batcher):
        puts = [batcher.put([job(id=f"a{n}"), job(id=f"b{n}")], [event(id=f"e{n}")]) for n in range(50)]
        return await asyncio.gather(*puts)

    answers = batched(NowhereStore(), scenario)
    for number, put in enumerate(answers):
        assert [placed.id for placed in put.jobs] == [f"a{number}", f"b{number}"]
        assert [placed.id for placed in put.events] == [f"e{number}"]


def test_what_arrives_during_a_commit_shares_the_next_one():
    store = HeldStore()

    async def scenario(batcher):
        first = asyncio.create_task(batcher.put([job(id="first")]))
        await until(store.began.is_set)
        others = [asyncio.create_task(batcher.put([job(id=f"j{n}")])) for n in range(250)]
        await asyncio.sleep(0)
        store.let_go.set()
        await asyncio.gather(first, *others)

    batched(store, scenario)
    assert [len(call) for call in store.calls] == [1, 100, 100, 50]
    assert len(store.threads) == 1


def test_large_entries_are_committed_in_smaller_batches():
    store = HeldStore()

    async def scenario(batcher):
        first = asyncio.create_task(batcher.put([job(id="first")]))
        await until(store.began.is_set)
        body = b"x" * (6 << 20)
        others = [asyncio.create_task(batcher.put([job(id=f"j{n}")], [event(id=f"e{n}", body=body)])) for n in range(6)]
        await asyncio.sleep(0)
        store.let_go.set()
        await asyncio.gather(first, *others)

    batched(store, scenario)
    assert [len(call) for call in store.calls] == [1, 3, 3]


def test_nobody_is_answered_before_the_commit():
    store = HeldStore()

    async def scenario(batcher):
        put = asyncio.create_task(batcher.put([JOB]))
        await until(store.began.is_set)
        early = put.done()
        store.let_go.set()
        await put
        return early

    assert batched(store, scenario) is False


def test_what_was_answered_is_in_the_store(tmp_path, store):
    async def scenario(batcher):
        await asyncio.gather(*[batcher.put([job(id=f"j{n}")]) for n in range(300)])

    batched(store, scenario)
    assert store.backlog().accepted == 300


def test_a_broken_entry_is_refused_before_it_joins_a_batch():
    store = NowhereStore()

    async def scenario(batcher):
        with pytest.raises(InvalidJob, match="queue is 'Bad'"):
            await batcher.put([job(queue="Bad")])

    batched(store, scenario)
    assert store.calls == []


def test_one_entry_that_the_store_chokes_on_does_not_fail_the_others():
    store = FailingStore(ValueError("poison"), only={"j13", "j77"})

    async def scenario(batcher):
        puts = [batcher.put([job(id=f"j{n}")]) for n in range(100)]
        return await asyncio.gather(*puts, return_exceptions=True)

    answers = batched(store, scenario)
    failed = [number for number, answer in enumerate(answers) if isinstance(answer, ValueError)]
    assert failed == [13, 77]
    assert all(isinstance(answer, Put) for number, answer in enumerate(answers) if number not in failed)


@pytest.mark.parametrize("error", [StoreUnavailable("disk full"), SchemaMismatch("made by another version")])
def test_trouble_of_the_store_goes_to_everybody_at_once(error):
    store = FailingStore(error)

    async def scenario(batcher):
        return await asyncio.gather(*[batcher.put([job(id=f"j{n}")]) for n in range(20)], return_exceptions=True)

    answers = batched(store, scenario)
    assert {(type(answer), str(answer)) for answer in answers} == {(type(error), str(error))}
    assert len({id(answer) for answer in answers}) == 20
    assert sum(len(call) for call in store.calls) == 20  # no halves were tried


def test_too_many_waiting_entries_are_refused_at_once():
    store = HeldStore()

    async def scenario(batcher):
        puts = [asyncio.create_task(batcher.put([job(id="first")]))]
        await until(store.began.is_set)
        puts += [asyncio.create_task(batcher.put([job(id=f"j{n}")])) for n in range(10)]
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable, match=r"too much waits to be stored \(10 entries\)"):
            await batcher.put([job(id="one too many")])
        store.let_go.set()
        await asyncio.gather(*puts)

    batched(store, scenario, room=10)


def test_too_many_waiting_bytes_are_refused_at_once():
    store = HeldStore()

    async def scenario(batcher):
        puts = [asyncio.create_task(batcher.put([job(id="first")]))]
        await until(store.began.is_set)
        puts.append(asyncio.create_task(batcher.put([job(id="large", payload=b"x" * 900)])))
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable, match="too much waits"):
            await batcher.put([job(id="larger", payload=b"x" * 200)])
        store.let_go.set()
        await asyncio.gather(*puts)

    batched(store, scenario, room_bytes=1000)


def test_an_entry_that_is_larger_than_the_room_gets_in_alone():
    async def scenario(batcher):
        return await batcher.put([job(payload=b"x" * 2000)])

    assert len(batched(NowhereStore(), scenario, room_bytes=1000).jobs) == 1


def test_a_store_that_takes_too_long_costs_the_caller_only_his_patience():
    store = HeldStore()

    async def scenario(batcher):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"not on disk after 0\.05 s"):
            await batcher.put([JOB])
        waited = time.monotonic() - began
        store.let_go.set()
        late = await batcher.put([job(id="next")])
        return waited, late

    waited, late = batched(store, scenario, patience=0.05)
    assert waited < 5
    assert late.jobs[0].id == "next"
    assert store.calls[0] == ["invoice:42"]  # it may still have been stored


def test_a_caller_that_is_cancelled_does_not_harm_the_others():
    store = HeldStore()

    async def scenario(batcher):
        first = asyncio.create_task(batcher.put([job(id="first")]))
        await until(store.began.is_set)
        gone, stays = [asyncio.create_task(batcher.put([job(id=name)])) for name in ("gone", "stays")]
        await asyncio.sleep(0)
        gone.cancel()
        store.let_go.set()
        await asyncio.gather(first, stays)
        return stays.result()

    assert batched(store, scenario).jobs[0].id == "stays"


def test_a_batcher_works_in_one_loop_after_the_other(store):
    batcher = Batcher(Intake(store))

    async def scenario(name):
        return await asyncio.gather(*[batcher.put([job(id=f"{name}:{n}")]) for n in range(100)])

    try:
        assert [len(asyncio.run(scenario(name))) for name in "ab"] == [100, 100]
    finally:
        batcher.close()
    assert store.backlog().accepted == 200


class QuickStore(NowhereStore):
    """Can be put to at once; ``slow`` makes it wait as a slow disk does."""

    can = msgspec.structs.replace(NowhereStore.can, puts_at_once=True)
    slow = 0.0

    def try_put(self, jobs, events=()):
        assert not self.slow or not time.sleep(self.slow)  # the disk's time, not ours
        return self.put(jobs, events)


def test_a_quick_store_is_called_in_the_thread_of_the_loop_once_for_all_that_came_in_a_turn():
    store = QuickStore()

    async def scenario(batcher):
        return await asyncio.gather(*[batcher.put([job(id=f"j{n}")]) for n in range(50)])

    assert len(batched(store, scenario)) == 50
    assert [len(call) for call in store.calls] == [50]
    assert store.threads == {threading.current_thread().name}


def test_a_large_crowd_is_put_in_several_turns_so_that_others_get_theirs():
    store = QuickStore()

    async def scenario(batcher):
        puts = [asyncio.create_task(batcher.put([job(id=f"j{n}")])) for n in range(250)]
        seen = []
        while not all(put.done() for put in puts):
            seen.append(len(store.calls))
            await asyncio.sleep(0)
        return seen

    assert {1, 2} <= set(batched(store, scenario))
    assert [len(call) for call in store.calls] == [100, 100, 50]


def test_a_store_that_becomes_slow_is_called_aside_and_the_loop_goes_on():
    store = QuickStore()
    store.slow = 10 * QUICK

    async def scenario(batcher):
        for n in range(5):
            await batcher.put([job(id=f"j{n}")])

    batched(store, scenario)
    first, last = store.threads_in_order[0], store.threads_in_order[-1]
    assert first == threading.current_thread().name != last


def test_a_store_that_is_written_by_somebody_else_is_waited_for_aside(store, tmp_path):
    held, let_go = threading.Event(), threading.Event()

    def hold(db):
        held.set()
        assert let_go.wait(10)

    writer = threading.Thread(target=lambda: store._database.write(hold))
    writer.start()
    assert held.wait(10)

    async def scenario(batcher):
        put = asyncio.create_task(batcher.put([JOB]))
        turns = 0
        while not put.done():
            turns += 1
            if turns == 3:  # the loop goes round although the store is taken
                let_go.set()
            await asyncio.sleep(0.001)
        return turns, put.result()

    turns, put = batched(store, scenario)
    writer.join()
    assert turns >= 3
    assert put.jobs[0].id == "invoice:42"


def test_one_entry_that_chokes_the_store_at_once_fails_alone():
    class Choking(QuickStore, FailingStore):
        pass

    async def scenario(batcher):
        puts = [batcher.put([job(id=f"j{n}")]) for n in range(10)]
        return await asyncio.gather(*puts, return_exceptions=True)

    answers = batched(Choking(ValueError("poison"), only={"j3"}), scenario)
    assert [n for n, answer in enumerate(answers) if isinstance(answer, ValueError)] == [3]


def test_closing_commits_what_waits_and_refuses_what_comes_later(store):
    batcher = Batcher(Intake(store))

    async def scenario():
        puts = [asyncio.create_task(batcher.put([job(id=f"j{n}")])) for n in range(150)]
        await asyncio.sleep(0)
        batcher.close()
        with pytest.raises(StoreUnavailable, match="this process is shutting down"):
            await batcher.put([job(id="late")])
        return await asyncio.gather(*puts)

    assert len(asyncio.run(scenario())) == 150
    assert store.backlog().accepted == 150


def test_a_loop_that_has_ended_leaves_the_thread_alive():
    store = HeldStore()
    batcher = Batcher(Intake(store))

    async def leaves_early():
        put = asyncio.create_task(batcher.put([job(id="left behind")]))
        await until(store.began.is_set)
        put.cancel()

    asyncio.run(leaves_early())
    store.let_go.set()
    try:
        assert asyncio.run(batcher.put([job(id="next")])).jobs[0].id == "next"
    finally:
        batcher.close()


def test_the_same_event_in_one_batch_makes_its_jobs_once(store):
    async def scenario(batcher):
        entry = [job(id="shop:e1:crm", event=("shop", "e1"))], [EVENT]
        return await asyncio.gather(*[batcher.put(*entry) for _ in range(5)])

    answers = batched(store, scenario)
    assert sorted(put.events[0].duplicate for put in answers) == [False, True, True, True, True]
    assert store.backlog().accepted == 1
    assert store.get("shop:e1:crm").repeat is Repeat.SAFE


def test_a_crowd_that_still_grows_is_put_together():
    store = QuickStore()

    async def scenario(batcher):
        puts = []
        for n in range(5):
            puts.append(asyncio.create_task(batcher.put([job(id=f"j{n}")])))
            await asyncio.sleep(0)  # a turn of the loop later comes the next
        await asyncio.gather(*puts)

    batched(store, scenario)
    assert [len(call) for call in store.calls] == [5]


def test_one_that_cannot_be_told_keeps_nobody_else_from_hearing(caplog):
    store, told = QuickStore(), []

    def breaks(end):
        raise RuntimeError("its connection is gone")

    async def scenario(batcher):
        batcher.submit([job(id="broken")], (), breaks)
        batcher.submit([job(id="whole")], (), told.append)
        await batcher.put([job(id="next")])

    batched(store, scenario)
    assert [put.jobs[0].id for put in told] == ["whole"]
    assert "the end of a put could not be told" in caplog.text
