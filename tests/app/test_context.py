import asyncio
import dataclasses
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.app.stepping import app_of, work
from tests.worker.support import until
from treppe import Bury, Context, Down, Retry, State, TreppeError, Unclear, Wait
from treppe.app.context import MAX_RESULT
from treppe.job import Event, Kind
from treppe.settle import AFTER_LAPSE
from treppe.store.protocol import Seen
from treppe.testing.kit import drain


@dataclasses.dataclass
class Contact:
    id: int
    since: datetime


CONTACT = Contact(7, datetime(2026, 11, 27, tzinfo=UTC))


class Calls:
    """What the steps of a task did, over all its attempts."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, name: str) -> str:
        self.made.append(name)
        return f"result of {name}"

    async def later(self, name: str) -> str:
        await asyncio.sleep(0)
        return self(name)


@pytest.fixture
def calls() -> Calls:
    return Calls()


def run(app, function, clock=None, attempts=1, **settings):
    """One job of this function; with a clock, as often as it wants to be tried again."""
    placed = app.task(name="task", queue="q", **settings)(function).using(id="job:1").enqueue()
    for _ in range(attempts):
        drain(app)
        if clock:
            clock.advance(7200)
    return app.job(placed.id)


def revive(app, job):
    assert app.store.change([Seen(job.id, job.token)], Event.REVIVE, "anna") == ()


def test_a_task_knows_its_job(app, clock):
    seen = []

    def task(ctx: Context):
        seen.append((ctx.id, ctx.queue, ctx.attempt, ctx.idempotency_key, ctx.deadline))
        if ctx.attempt < 3:
            raise Retry(after=1)

    run(app, task, clock, 3, deadline="15m")
    deadline = 1_700_000_900.0
    assert seen == [("job:1", "q", attempt, "job:1", deadline) for attempt in (1, 2, 3)]


def test_a_task_without_a_promise_has_no_deadline(app, clock):
    seen = []

    def task(ctx: Context):
        seen.append(ctx.deadline)

    run(app, task)
    assert seen == [None]


def test_finished_steps_are_not_done_again(app, clock, calls):
    def task(ctx: Context):
        first = ctx.step("crm", calls, "crm")
        second = ctx.step("invoice", calls, "invoice", repeat="ask")
        if ctx.attempt == 1:
            raise Retry("the third is not there yet")
        return [first, second, ctx.step("mail", calls, name="mail")]

    job = run(app, task, clock, 2)
    assert calls.made == ["crm", "invoice", "mail"]
    assert app.result(job.id) == ["result of crm", "result of invoice", "result of mail"]


def test_async_steps_are_awaited_and_remembered(app, clock, calls):
    async def task(ctx: Context):
        first = await ctx.step("crm", calls.later, "crm")
        second = ctx.step("invoice", calls, "invoice")
        third = await ctx.step("stock", calls.later, "stock", repeat="ask")
        if ctx.attempt == 1:
            raise Retry
        return [first, second, third]

    job = run(app, task, clock, 2)
    assert calls.made == ["crm", "invoice", "stock"]
    assert app.result(job.id) == ["result of crm", "result of invoice", "result of stock"]


@pytest.mark.parametrize("repeat", ["safe", "ask"])
def test_async_steps_may_be_done_at_once(app, clock, calls, repeat):
    async def task(ctx: Context):
        return await asyncio.gather(*[ctx.step(f"n{n}", calls.later, str(n), repeat=repeat) for n in range(5)])

    job = run(app, task)
    assert len(app.result(job.id)) == 5


def test_the_loop_goes_on_while_a_step_is_written_down(app, clock, calls, monkeypatch):
    note, loops = app.store.note, []
    monkeypatch.setattr(app.store, "note", lambda *given: loops.append(running_loop()) or note(*given))

    async def task(ctx: Context):
        await ctx.step("invoice", calls.later, "invoice", repeat="ask")

    run(app, task)
    assert loops == [None, None]


def running_loop():
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def make_contact() -> Contact:
    return CONTACT


def make_price() -> Decimal:
    return Decimal("9.90")


def make_nothing() -> None:
    return None


def make_something():
    return CONTACT


def make_a_lie() -> int:
    return "seven"  # type: ignore[return-value]


def make_unresolvable() -> "Nowhere":  # noqa: F821
    return 7


class Maker:
    def __call__(self) -> int:
        return 7


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (make_contact, CONTACT),
        (make_price, Decimal("9.90")),
        (make_nothing, None),
        (make_something, {"id": 7, "since": "2026-11-27T00:00:00Z"}),
        (make_a_lie, "seven"),
        (make_unresolvable, 7),
        (Maker(), 7),
        (lambda: {1: (2, 3)}, {"1": [2, 3]}),
    ],
)
def test_a_result_is_the_same_the_first_time_and_later(app, clock, function, result):
    seen: list[Any] = []

    def task(ctx: Context):
        seen.append(ctx.step("make", function))
        if ctx.attempt == 1:
            raise Retry

    run(app, task, clock, 2)
    assert seen == [result, result]
    assert type(seen[0]) is type(seen[1]) is type(result)


@pytest.mark.parametrize("repeat", ["safe", "ask"])
def test_a_step_that_failed_is_tried_again_or_asked_about(app, clock, repeat):
    """A mark without a result: nobody knows whether it happened."""
    tries = []

    def fail():
        tries.append(1)
        raise ValueError("broke off")

    def task(ctx: Context):
        ctx.step("invoice", fail, repeat=repeat)

    job = run(app, task, clock, 2)
    if repeat == "safe":
        assert (job.state, len(tries)) == (State.WAITING, 2)
    else:
        assert (job.state, len(tries)) == (State.UNCLEAR, 1)
        assert job.error == 'step "invoice" was started before, and nobody knows whether it happened'


@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize("repeat", ["safe", "ask"])
@pytest.mark.parametrize("ending", [Retry("x", after=1), Down("x"), Wait("x", after=1)])
def test_a_step_that_says_that_nothing_happened_is_tried_again(app, clock, ending, repeat, in_loop):
    tries = []

    def certain():
        tries.append(1)
        raise ending

    async def certain_in_the_loop():
        certain()

    def plain(ctx: Context):
        ctx.step("invoice", certain, repeat=repeat)

    async def awaited(ctx: Context):
        await ctx.step("invoice", certain_in_the_loop, repeat=repeat)

    task = awaited if in_loop else plain

    job = run(app, task, clock, 2)
    assert (job.state, len(tries)) == (State.WAITING, 2)


@pytest.mark.parametrize(("ending", "state"), [(Unclear("x"), State.UNCLEAR), (Bury("x"), State.DEAD)])
def test_a_step_may_end_its_job(app, clock, ending, state):
    def end():
        raise ending

    def task(ctx: Context):
        ctx.step("invoice", end, repeat="ask")

    assert run(app, task).state is state


def test_an_async_step_that_failed_is_asked_about(app, clock):
    async def fail():
        raise ValueError("broke off")

    async def task(ctx: Context):
        await ctx.step("invoice", fail, repeat="ask")

    assert run(app, task, clock, 2).state is State.UNCLEAR


@pytest.mark.parametrize("result", [object(), {(1, 2): 3}, "\ud800"])
def test_a_result_that_is_not_json_like_is_told(app, clock, result):
    def task(ctx: Context):
        ctx.step("make", lambda: result)

    (line,) = run(app, task).history
    assert line.error.startswith('TreppeError: step "make" is done, but its result is not JSON-like: ')


def test_a_result_that_is_too_large_is_told(app, clock):
    def task(ctx: Context):
        assert ctx.step("fits", lambda: "x" * (MAX_RESULT - 2)) == "x" * (MAX_RESULT - 2)
        ctx.step("huge", lambda: "x" * MAX_RESULT)

    (line,) = run(app, task).history
    assert f'step "huge" is done, but its result has {MAX_RESULT + 2} bytes, {MAX_RESULT} are kept' in line.error


def test_a_step_of_the_same_name_is_told(app, clock, calls):
    def task(ctx: Context):
        for sku in ("bolt", "nut"):
            ctx.step("ship", calls, sku)

    (line,) = run(app, task).history
    assert 'step "ship" comes twice in this task, and the second time it would only get the result of' in line.error
    assert calls.made == ["bolt"]


async def async_function(n: int) -> int:
    return n


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda ctx: ctx.step("", len, ""), "a step needs a name of 1 to 200 characters, not ''"),
        (lambda ctx: ctx.step("x" * 201, len, ""), "a step needs a name of 1 to 200 characters"),
        (lambda ctx: ctx.step(7, len, ""), "a step needs a name of 1 to 200 characters, not '7'"),
        (lambda ctx: ctx.step("a", len, "", repeat="look"), 'step "a": repeat=\'look\' is not known. Use "safe" or'),
        (lambda ctx: ctx.step("a", lambda: async_function(7)), 'step "a": the function gave back something to await'),
    ],
)
def test_a_step_that_cannot_be_is_told(app, clock, use, sentence):
    def task(ctx: Context):
        use(ctx)

    (line,) = run(app, task).history
    assert line.error.startswith(f"TreppeError: {sentence}")


def test_a_step_may_have_arguments_of_any_name(app, clock):
    def make(name: str, function: str) -> str:
        return name + function

    def task(ctx: Context):
        return ctx.step("make", make, name="a", function="b")

    assert app.result(run(app, task).id) == "ab"


def test_whoever_has_lost_the_job_does_not_begin_a_step(app, clock, calls):
    lost: list[Any] = []

    def task(ctx: Context):
        if lost:
            return
        lost.append(ctx)
        app.store.retire(ctx._run.claim.worker)
        while not app.store.upkeep(AFTER_LAPSE).lapsed:
            clock.advance(1)
        with pytest.raises(TreppeError, match='job "job:1" was left as it is: somebody else has taken it over'):
            ctx.step("invoice", calls, "invoice", repeat="ask")

    run(app, task)
    assert lost
    assert calls.made == []


# Killed inside


def stepping(file, mode):
    return subprocess.Popen([sys.executable, "-m", "tests.app.stepping", str(file), mode])


@pytest.mark.parametrize("mode", ["hang", "exit"])
def test_killed_inside_a_step_the_job_is_unclear_at_that_step(tmp_path, mode):
    file, trace = tmp_path / "jobs.db", tmp_path / "trace"
    app = app_of(file)
    app.tasks["order"].using(id="order:1").enqueue()
    with stepping(file, mode) as process:
        until(lambda: trace.exists() and "invoice" in trace.read_text())
        process.kill()
    until(lambda: app.store.upkeep(AFTER_LAPSE).lapsed)
    work(app)
    job = app.job("order:1")
    assert job.state is State.UNCLEAR
    assert job.error == 'step "invoice" was started before, and nobody knows whether it happened'
    assert trace.read_text().split() == ["crm", "invoice"]
    assert [(line.event, line.kind) for line in job.history] == [
        (Event.LAPSE, Kind.LAPSED),
        (Event.DOUBT, Kind.UNCLEAR),
    ]
    app.close()


def test_a_human_who_says_do_it_again_is_obeyed(tmp_path):
    file, trace = tmp_path / "jobs.db", tmp_path / "trace"
    app = app_of(file)
    app.tasks["order"].using(id="order:1").enqueue()
    with stepping(file, "exit"):
        pass
    until(lambda: app.store.upkeep(AFTER_LAPSE).lapsed)
    work(app)
    revive(app, app.job("order:1"))
    work(app)
    assert app.job("order:1").state is State.DONE
    assert app.result("order:1") == ["the result of crm", "number 7", "the result of end"]
    assert trace.read_text().split() == ["crm", "invoice", "invoice", "end"]
    app.close()


def test_dead_and_revived_it_still_does_not_know(app, clock, calls):
    """Whoever revives a dead job did not answer the question of its step."""

    def fail() -> None:
        calls("invoice")
        raise ValueError("broke off")

    def task(ctx: Context):
        if ctx.attempt == 2:
            raise Bury("given up")
        ctx.step("invoice", fail, repeat="ask")

    job = run(app, task, clock, 2)
    assert job.state is State.DEAD
    revive(app, job)
    drain(app)
    assert app.job(job.id).state is State.UNCLEAR
    assert calls.made == ["invoice"]
