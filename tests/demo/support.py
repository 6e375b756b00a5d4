"""What the tests of the demo share: made-up orders, ledgers and days."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from treppe.demo.friday import DESTINATIONS, Friday, Order
from treppe.demo.ledger import Line, Posted, Told
from treppe.demo.reconcile import Evidence, Kill
from treppe.demo.standins import StandIn
from treppe.demo.wire import Answer, Request
from treppe.job import Attempt, Event, Job, Kind, Repeat, State

KEYS = {"key-of-up": "up", "key-of-work": "work"}
QUICK = Friday(orders=20, seed=3, hold=0.2)


class Clock:
    """A clock that only goes when it is told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def stand_in(kind: type[StandIn], folder: Path, clock: Callable[[], float] = time.time, day: Friday = QUICK) -> StandIn:
    """A remote system that works at once."""

    async def at_once(shortest: float, longest: float) -> None:
        await asyncio.sleep(0)

    remote = kind(folder, day, KEYS, lambda text: None, clock)
    remote.work = at_once
    return remote


def call(order: Order, key: str | None = None, api_key: str = "key-of-up", method: str = "POST") -> Request:
    """An order as it comes over the wire, from a caller that hangs up at once when it must wait."""
    headers = {"x-api-key": api_key} | ({"idempotency-key": key} if key else {})

    async def gone() -> None:
        await asyncio.sleep(0)

    return Request(method, "/", headers, order.body, gone)


def answers(remote: StandIn, *requests: Request) -> list[int | None]:
    """The status of each answer, None for silence."""
    return [answer.status if answer else None for answer in answers_in_full(remote, *requests)]


def answers_in_full(remote: StandIn, *requests: Request) -> list[Answer | None]:
    async def play() -> list[Answer | None]:
        return [await remote.handle(request) for request in requests]

    return asyncio.run(play())


def within(seconds: float, story: Callable[[], Awaitable[None]]) -> None:
    """Run a story, and not for ever."""

    async def play() -> None:
        async with asyncio.timeout(seconds):
            await story()

    asyncio.run(play())


async def until(condition: Callable[[], bool]) -> None:
    """Look again and again; :func:`within` bounds it."""
    while not condition():  # noqa: ASYNC110 (what is waited for is a process)
        await asyncio.sleep(0.01)


def good_friday(orders: int = 20) -> Evidence:
    """A Friday on which every promise was kept: one killed worker, two broken orders, one hold."""
    day = Friday(orders=orders, seed=5)
    made = day.burst()
    posted = [
        Posted(1.0 + n, order.number, order.event, order.customer, order.seq, 200, 5.0) for n, order in enumerate(made)
    ]
    ledgers = {name: [_line(name, order, n) for n, order in enumerate(made)] for name in DESTINATIONS}
    shut = msgspec.structs.replace(ledgers["accounting"][3], at=12.5, answer=429, acted=False)
    ledgers["accounting"].insert(3, shut)
    _break(ledgers["accounting"], day.refused, 422)
    _break(ledgers["stock"], day.failing, 500)
    jobs = [_job(name, order) for order in made for name in DESTINATIONS]
    dead = [job.id for job in jobs if job.state is State.DEAD]
    told = [Told(50.0, channel, True, f"These are dead: {', '.join(dead)}") for channel in ("webhook", "mail")]
    return Evidence(
        day, posted, ledgers, told, jobs, kill=Kill("work", 30.0), unclear_on_the_way=2, peak_backlog=77, peak_age=9.96
    )


def changed(evidence: Evidence, **fields: object) -> Evidence:
    return msgspec.structs.replace(evidence, **fields)


def with_lines(evidence: Evidence, destination: str, change: Callable[[list[Line]], list[Line]]) -> Evidence:
    """The same with another ledger at one destination."""
    return changed(evidence, ledgers={**evidence.ledgers, destination: change(list(evidence.ledgers[destination]))})


def with_job(evidence: Evidence, number: int, destination: str, **fields: object) -> Evidence:
    """The same with one job changed."""
    id = job_id(next(order for order in evidence.friday.burst() if order.number == number), destination)
    jobs = [msgspec.structs.replace(job, **fields) if job.id == id else job for job in evidence.jobs]
    return changed(evidence, jobs=jobs)


def job_id(order: Order, destination: str) -> str:
    return f"shop:{order.event}/orders/create/friday.example.org:{destination}"


def attempt(kind: Kind, event: Event = Event.DEFER, charged: bool = False, at: float = 35.0) -> Attempt:
    return Attempt(1, event, kind, charged, 10.0, 20.0, at, 7)


def _line(name: str, order: Order, n: int) -> Line:
    return Line(10.0 + n, order.number, order.customer, order.seq, order.event, "up", 201, True)


def _break(lines: list[Line], number: int, status: int) -> None:
    for n, line in enumerate(lines):
        if line.order == number:
            lines[n] = msgspec.structs.replace(line, answer=status, acted=False)


def _job(name: str, order: Order) -> Job:
    broken = Friday(orders=20, seed=5).broken.get(name) == order.number
    return Job(
        seq=int(hashlib.sha256(f"{order.number} {name}".encode()).hexdigest()[:8], 16),
        id=job_id(order, name),
        task=f"destination:{name}",
        queue=name,
        state=State.DEAD if broken else State.DONE,
        key=str(order.customer),
        priority=0,
        repeat=Repeat.SAFE,
        token=1,
        claims=1,
        charged=0,
        attempts=5,
        crashes=3,
        created_at=1.0,
        due_at=1.0,
        run_at=None,
        deadline_at=None,
        expires_at=None,
        event=("shop", f"{order.event}/orders/create/friday.example.org"),
        history=(attempt(Kind.FAILED, Event.BURY, charged=True),) if broken else (),
    )
