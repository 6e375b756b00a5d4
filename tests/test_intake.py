"""The one way in: what is refused and how it is said, new ids, and group commit for event loops."""

import asyncio
import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treppe.intake as intake_module
from treppe.errors import Conflict, InvalidJob, SchemaMismatch, StoreUnavailable, TreppeError, Unsupported
from treppe.intake import MAX_PUT, Batcher, Intake, new_id, raise_conflicts
from treppe.job import NewEvent, NewJob, Placed, Repeat
from treppe.store.protocol import Put
from treppe.store.sqlite import SQLiteStore

JOB = NewJob("invoice:42", "shop.tasks.invoice", "lexware")
EVENT = NewEvent("shop", "e1", b"{}")


@pytest.fixture
def store(tmp_path):
    store = SQLiteStore(tmp_path / "jobs.db", durable=False)
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def intake(store):
    return Intake(store)


def job(**fields):
    return msgspec.structs.replace(JOB, **fields)


def event(**fields):
    return msgspec.structs.replace(EVENT, **fields)


def test_a_job_that_keeps_the_rules_is_stored(intake, store):
    put = intake.put([job(key="customer:7", priority=-100, delay=0.5, deadline=60.0)])
    assert put.jobs == (Placed("invoice:42", put.jobs[0].seq),)
    assert store.get("invoice:42").key == "customer:7"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": ""}, "id is ''. Use text of 1 to 255 characters"),
        ({"id": "x" * 256}, "Use text of 1 to 255 characters"),
        ({"id": "a\nb"}, "without control characters"),
        ({"id": "a\x00"}, "without control characters"),
        ({"id": "a\x85b"}, "without control characters"),
        ({"id": "lone \ud800"}, "without control characters"),
        ({"id": 42}, "id is 42. Use text"),
        ({"id": None}, "id is None. Use text"),
        ({"task": "my task"}, "task is 'my task'. Use text of 1 to 255 characters without spaces"),
        ({"task": ""}, "task is ''"),
        ({"queue": "Lexware"}, "queue is 'Lexware'. Use up to 128 of a-z 0-9"),
        ({"queue": "lexware\n"}, "queue is 'lexware\\n'"),
        ({"queue": "-lexware"}, "beginning with a letter or digit"),
        ({"queue": "q" * 129}, "Use up to 128"),
        ({"queue": "lex'; drop"}, "queue is"),
        ({"queue": "{tag}"}, "queue is"),
        ({"queue": "büro"}, "queue is"),
        ({"key": ""}, "key is ''. Use text of 1 to 255 characters without control characters, or None"),
        ({"key": "k" * 256}, "key is"),
        ({"key": "\ud800"}, "key is"),
        ({"payload": "text"}, "payload is of type str. Use bytes"),
        ({"payload": b"x", "event": ("shop", "e1")}, "A job of an event has no payload of its own"),
        ({"content_type": "a\rb"}, "content_type is"),
        ({"priority": 101}, "priority is 101. Use a whole number from -100 to 100"),
        ({"priority": -101}, "priority is -101"),
        ({"priority": 1.5}, "priority is 1.5"),
        ({"priority": True}, "priority is True"),
        ({"repeat": "safe"}, "repeat is 'safe'. Use Repeat(\"safe\")"),
        ({"attempts": 0}, "attempts is 0. Use a whole number from 1"),
        ({"attempts": 2.0}, "attempts is 2.0"),
        ({"crashes": 0}, "crashes is 0"),
        ({"delay": -0.1}, "delay is -0.1. Use seconds, from 0 to 100 years"),
        ({"delay": float("nan")}, "delay is nan"),
        ({"delay": float("inf")}, "delay is inf"),
        ({"delay": "5s"}, "delay is '5s'"),
        ({"at": -1.0}, "at is -1.0. Use Unix seconds"),
        ({"at": float("nan")}, "at is nan"),
        ({"at": 1e15}, "before the year 10000"),
        ({"at": 1.0, "delay": 1.0}, "Give at or delay, not both"),
        ({"expires": 0.0}, "expires is 0.0"),
        ({"expires": float("inf")}, "expires is inf"),
        ({"deadline": -1.0}, "deadline is -1.0"),
        ({"deadline": False}, "deadline is False"),
        ({"deadline": ""}, "deadline is ''"),
        ({"keep": -1.0}, "keep is -1.0"),
        ({"keep": float("nan")}, "keep is nan"),
    ],
)
def test_a_job_that_breaks_a_rule_is_refused_by_name_with_the_cure(intake, store, fields, said):
    with pytest.raises(InvalidJob) as error:
        intake.put([JOB, job(**fields)])
    assert said in str(error.value)
    assert str(error.value).startswith(f"job {fields.get('id', 'invoice:42')!r}"[:40])
    assert store.backlog().accepted == 0


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": ""}, "event '': id is ''"),
        ({"id": "x" * 256}, "Use text of 1 to 255"),
        ({"source": ""}, "source is ''"),
        ({"body": "text"}, "body is of type str. Use bytes"),
        ({"topic": "a\x00"}, "topic is"),
        ({"content_type": "x" * 300}, "content_type is"),
    ],
)
def test_an_event_that_breaks_a_rule_is_refused_by_name_with_the_cure(intake, fields, said):
    with pytest.raises(InvalidJob) as error:
        intake.put([], [event(**fields)])
    assert said in str(error.value)


def test_an_event_may_have_no_topic_and_no_content_type(intake):
    assert not intake.put([], [event(topic="", content_type="")]).events[0].duplicate


def test_a_payload_never_appears_in_an_error(intake):
    with pytest.raises(InvalidJob) as error:
        intake.put([job(payload="card 4111")])
    assert "4111" not in str(error.value)


def test_a_payload_may_have_256_kib_and_no_more(intake):
    intake.put([job(payload=b"x" * 262_144)])
    with pytest.raises(InvalidJob, match=r"its payload has 262145 bytes, 262144 are allowed\. Put the data where"):
        intake.put([job(id="b", payload=b"x" * 262_145)])


def test_the_payload_limit_can_be_set(store):
    with pytest.raises(InvalidJob, match="its payload has 11 bytes, 10 are allowed"):
        Intake(store, max_payload=10).put([job(payload=b"x" * 11)])


def test_a_put_is_all_or_nothing_up_to_its_bound(intake, store):
    jobs = [job(id=f"j{number}") for number in range(MAX_PUT)]
    assert len(intake.put(jobs).jobs) == MAX_PUT
    assert store.backlog().accepted == MAX_PUT
    with pytest.raises(InvalidJob, match=r"10001 entries are too many for one put\. Put at most 10000 at once"):
        intake.put([job(id=f"k{number}") for number in range(MAX_PUT)], [EVENT])
    assert store.backlog().accepted == MAX_PUT


def test_inside_a_foreign_transaction_is_refused_by_a_store_that_cannot(store, monkeypatch):
    monkeypatch.setattr(store, "can", msgspec.structs.replace(store.can, within=False))
    with pytest.raises(Unsupported, match="cannot enqueue inside your transaction"):
        Intake(store).plan([JOB])


def test_inside_a_foreign_transaction_the_same_rules_hold(intake, store, tmp_path):
    with pytest.raises(InvalidJob, match="queue is 'Bad'"):
        intake.plan([job(queue="Bad")])
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as mine, mine:
        assert carried_out(intake.plan([JOB]), mine).jobs[0].id == "invoice:42"
    assert store.get("invoice:42").queue == "lexware"


def carried_out(plan, connection):
    rows = None
    while True:
        try:
            rows = connection.execute(*plan.send(rows)).fetchall()
        except StopIteration as end:
            return end.value


def test_a_taken_id_is_an_answer_and_an_error_only_where_it_is_wanted(intake):
    intake.put([JOB])
    same, other = intake.put([JOB]), intake.put([job(queue="other")])
    assert raise_conflicts(same) is same
    assert same.jobs[0].duplicate
    with pytest.raises(Conflict, match='the id "invoice:42" is taken by a job with another queue'):
        raise_conflicts(other)


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300))
def test_whatever_the_texts_are_it_is_stored_or_refused_in_words(id, queue, key):
    try:
        Intake(NowhereStore()).put([job(id=id, queue=queue, key=key)])
    except InvalidJob as error:
        str(error).encode()  # a sentence that can be written anywhere
    else:
        assert 0 < len(id) <= 255
        assert id.isprintable() or id.encode()


def test_new_ids_are_version_7_and_grow():
    ids = [new_id() for _ in range(10_000)]
    assert ids == sorted(set(ids))
    assert all(id[14] == "7" and id[19] in "89ab" for id in ids)
    milliseconds = int(ids[-1].replace("-", "")[:12], 16)
    assert abs(milliseconds / 1000 - time.time()) < 60


def test_new_ids_stay_unique_over_threads():
    with ThreadPoolExecutor(8) as threads:
        batches = list(threads.map(lambda _: [new_id() for _ in range(2000)], range(8)))
    assert len({id for batch in batches for id in batch}) == 16_000
    assert all(batch == sorted(batch) for batch in batches)


def test_new_ids_grow_although_the_clock_goes_back(monkeypatch):
    before = new_id()
    monkeypatch.setattr("treppe.intake.time.time_ns", lambda: 1_000_000_000)
    assert before < new_id() < new_id()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_ids_of_its_own_although_the_lock_was_held():
    read, write = os.pipe()
    with intake_module._id_lock:
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends it, should it wait for ever
            os.write(write, new_id().encode())
            os._exit(0)
    os.close(write)
    told = os.read(read, 100).decode()
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    assert len(told) == 36
    assert told != new_id()


class NowhereStore:
    """Answers at once, and remembers how it was called."""

    def __init__(self):
        self.calls = []
        self.threads = set()

    def put(self, jobs, events=()):
        self.calls.append([job.id for job in jobs])
        self.threads.add(threading.current_thread().name)
        self.may_fail(jobs)
        return Put(tuple(Placed(job.id, 1) for job in jobs), tuple(Placed(event.id, 1) for event in events))

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


def test_a_batcher_works_in_one_loop_after_the_other_and_in_two_at_once(store):
    batcher = Batcher(Intake(store))

    def in_a_loop_of_its_own(name):
        async def scenario():
            return await asyncio.gather(*[batcher.put([job(id=f"{name}:{n}")]) for n in range(100)])

        return len(asyncio.run(scenario()))

    try:
        assert in_a_loop_of_its_own("a") + in_a_loop_of_its_own("b") == 200
        with ThreadPoolExecutor(3) as threads:
            assert list(threads.map(in_a_loop_of_its_own, ["c", "d", "e"])) == [100, 100, 100]
    finally:
        batcher.close()
    assert store.backlog().accepted == 500


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


def test_every_error_of_the_intake_is_one_of_ours():
    assert issubclass(InvalidJob, TreppeError)
    assert issubclass(StoreUnavailable, TreppeError)
