"""What a user of the library writes, as mypy and pyright must understand it. Read by them, never run."""

from __future__ import annotations

import sqlite3
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from treppe import Backoff, Bury, Context, Down, Job, NewJob, Placed, Retry, State, Task, Treppe, Unclear, Wait

app = Treppe("sqlite:///shop.db")
app.queue("lexware", rate="2/s", concurrent=1)


@app.task
def bare(to: str, order: int = 0) -> bool:
    return True


@app.task(
    name="shop.configured", queue="mail", attempts=3, crashes=1, deadline="15m", expires=timedelta(days=7),
    timeout=30, key="to", repeat="ask", priority=10, keep="1d", backoff=Backoff(base=1.0), skip_dead=True,
    down=(OSError, RuntimeError),
)  # fmt: skip
def configured(to: str, order: int = 0) -> bool:
    return True


@app.task
def with_context(ctx: Context, to: str, *, order: int = 0) -> dict[str, int]:
    assert_type(ctx.id, str)
    assert_type(ctx.attempt, int)
    assert_type(ctx.deadline, float | None)
    assert_type(ctx.step("one", len, to), int)
    return {}


@app.task(queue="crm")
async def in_the_loop(ctx: Context, to: str) -> int:
    assert_type(await ctx.step("two", fetch, to, repeat="ask"), bytes)
    return 1


@app.task
def of_anything(payload: Any) -> None: ...


@app.task
def of_any_object(payload: object, times: int = 1) -> None: ...


@app.task
def of_nothing() -> None:
    raise Retry("mine", after=5)
    raise Wait("not yet", after="5m")
    raise Down(after=timedelta(minutes=1))
    raise Unclear("who knows")
    raise Bury("never")


async def fetch(to: str) -> bytes:
    return to.encode()


assert_type(bare("a", order=1), bool)
assert_type(bare.enqueue("a", order=1), Placed)
assert_type(bare.prepare("a"), NewJob)
assert_type(bare.using(id="x", delay="15m", key="k", priority=3, queue="q").enqueue("a", 2), Placed)
assert_type(bare.using(at=datetime.now(UTC)).prepare("a"), NewJob)
assert_type(bare.using(within=sqlite3.connect("shop.db")).enqueue("a"), Placed)
assert_type(configured("a"), bool)
assert_type(configured.enqueue("a", 1), Placed)
assert_type(with_context.enqueue("a", order=1), Placed)
assert_type(app.enqueue_many([bare.prepare("a"), with_context.prepare("b")]), list[Placed])
assert_type(app.job("x"), Job)
assert_type(app.job("x").state, State)
of_anything.enqueue(1)
of_anything.enqueue(payload={"a": 1})
of_any_object.enqueue(1)
of_any_object.enqueue(payload=1, times=2)
of_nothing.enqueue()


async def from_a_loop() -> None:
    assert_type(await in_the_loop.aenqueue("a"), Placed)
    assert_type(await bare.using(delay=5).aenqueue("a"), Placed)
    assert_type(await app.aenqueue_many([bare.prepare("a")]), list[Placed])


def named_types(one: Task[[str, int], bool], other: Task[[str], Coroutine[Any, Any, int]]) -> Placed:
    return one.enqueue("a", 1) if one("a", 1) else other.enqueue("a")
