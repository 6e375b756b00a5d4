"""The four remote systems. Each has rules of its own, a ledger of its own, and forgives nothing.

A stand-in reads the order as it came, decides, writes its line and only then answers.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from treppe.demo.friday import BROKEN_SKU, REFUSED_TAX_NUMBER, Friday
from treppe.demo.ledger import Ledger, Line
from treppe.demo.wire import Answer, Request


class Buyer(msgspec.Struct, frozen=True):
    """Whose order it is."""

    id: int


class Item(msgspec.Struct, frozen=True):
    """What was bought."""

    sku: str


class Seen(msgspec.Struct, frozen=True):
    """What a remote system reads of an order."""

    id: int
    customer: Buyer
    customer_seq: int
    tax_number: str
    line_items: list[Item]


class Entry(msgspec.Struct, frozen=True):
    """What became of a call: the status that is answered (None = none at all), and whether it changed anything."""

    answer: int | None
    acted: bool
    note: str = ""
    headers: Mapping[str, str] = {}


Tell = Callable[[str], None]
"""Where a stand-in tells what a spectator should know."""


class StandIn:
    """One remote system. ``names`` maps the API keys it knows to the process that was given each."""

    def __init__(
        self, folder: Path, day: Friday, names: Mapping[str, str], tell: Tell, clock: Callable[[], float] = time.time
    ) -> None:
        self.name = type(self).__name__.lower()
        self.day, self.tell, self.clock = day, tell, clock
        self.dice = random.Random(f"{self.name} {day.seed}")
        self._names = names
        self._ledger: Ledger[Line] = Ledger(folder / f"{self.name}.jsonl")

    async def handle(self, request: Request) -> Answer | None:
        """One HTTP call, from the bytes to the answer."""
        came = self.clock()
        who = self._names.get(request.headers.get("x-api-key", ""))
        if request.method != "POST" or who is None:
            return Answer(405 if who else 401)
        try:
            order = msgspec.json.decode(request.body, type=Seen)
        except msgspec.DecodeError:
            return Answer(400, b"this is no order")
        key = request.headers.get("idempotency-key")
        entry = await self.decide(order, key, who, request)
        self._ledger.write(
            Line(came, order.id, order.customer.id, order.customer_seq, key, who, entry.answer, entry.acted, entry.note)
        )
        if entry.answer is None:
            await self._silence(request)
            return None
        return Answer(entry.answer, b'{"ok":true}' if entry.acted else b"{}", entry.headers)

    async def decide(self, order: Seen, key: str | None, who: str, request: Request) -> Entry:
        """The system's own rules."""
        raise NotImplementedError

    async def work(self, shortest: float, longest: float) -> None:
        """Take as long as such a system takes."""
        await asyncio.sleep(self.dice.uniform(shortest, longest))

    async def _silence(self, request: Request) -> None:
        try:
            async with asyncio.timeout(self.day.hold):
                await request.gone()
        except TimeoutError:
            return


class Allowance:
    """So many calls per window; then shut for its rest, and each call while shut adds to that.

    >>> door = Allowance(calls=2, window=15.0, penalty=1.0, most=15.0)
    >>> [door.admit(now) for now in (0.0, 1.0, 2.0, 3.0)]
    [0.0, 0.0, 13.0, 13.0]
    >>> door.admit(17.0)
    0.0
    """

    def __init__(self, calls: int, window: float, penalty: float, most: float) -> None:
        self._calls, self._window, self._penalty, self._most = calls, window, penalty, most
        self._ends = self._shut_until = -math.inf
        self._left = 0
        self._added = 0.0

    def admit(self, now: float) -> float:
        """0.0 for an admitted call, else the seconds until it opens again."""
        if now < self._shut_until:
            extra = min(self._penalty, self._most - self._added)
            self._added += extra
            self._shut_until += extra
            return self._shut_until - now
        if now >= self._ends:
            self._ends, self._left, self._added = now + self._window, self._calls, 0.0
        if self._left:
            self._left -= 1
            return 0.0
        self._shut_until = self._ends
        return self._shut_until - now


class Accounting(StandIn):
    """Honours no idempotency key: a second call makes a second invoice. Shuts when called too often."""

    def __init__(
        self, folder: Path, day: Friday, names: Mapping[str, str], tell: Tell, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(folder, day, names, tell, clock)
        self._allowance = Allowance(day.allowed, day.window, day.penalty, day.most_penalty)
        self._trap: Trap | None = None
        self._told_until = 0.0

    def set_trap(self, who: str, calls: int) -> Trap:
        """The next *calls* of this process get no answer; every other of them, from the first, has acted."""
        self._trap = Trap(who, calls)
        return self._trap

    async def decide(self, order: Seen, key: str | None, who: str, request: Request) -> Entry:
        """429 when shut, 422 for a tax number that is none, else an invoice."""
        if wait := self._allowance.admit(self.clock()):
            self._tell_once(wait)
            return Entry(429, False, headers={"retry-after": str(math.ceil(wait))})
        if order.tax_number == REFUSED_TAX_NUMBER:
            return Entry(422, False, "the tax number is none")
        if self._trap and self._trap.catches(who):
            acts = self._trap.spring()
            return Entry(None, acts, "acted, never answered" if acts else "never got to it")
        await self.work(0.02, 0.06)
        return Entry(201, True)

    def _tell_once(self, wait: float) -> None:
        now = self.clock()
        if now > self._told_until:
            self.tell(f"accounting is shut with 429: {self.day.allowed} calls came too fast; {wait:.0f} s to wait")
        self._told_until = max(self._told_until, now + wait)


class Trap:
    """Waits for calls of one process, so that somebody can kill it *inside* them."""

    def __init__(self, who: str, calls: int) -> None:
        self._who, self._left, self._acts = who, calls, True
        self.full = asyncio.Event()

    def catches(self, who: str) -> bool:
        """Is this one of the calls it waits for?"""
        return self._left > 0 and who == self._who

    def spring(self) -> bool:
        """One more call is inside; returns whether it acts."""
        self._left -= 1
        if not self._left:
            self.full.set()
        acts, self._acts = self._acts, not self._acts
        return acts


class Crm(StandIn):
    """Upserts by idempotency key. Healthy at first, then in trouble: see :meth:`weather`."""

    def __init__(
        self, folder: Path, day: Friday, names: Mapping[str, str], tell: Tell, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(folder, day, names, tell, clock)
        self._desks = asyncio.Semaphore(day.crm_desks)
        self._rows: set[str] = set()
        self.began: float | None = None

    def weather(self, now: float) -> str:
        """``fine``, ``mixed`` or ``closed``, by the seconds since its first call."""
        if self.began is None:
            return "fine"
        into = (now - self.began - self.day.healthy) / self.day.outage
        return "fine" if not 0 <= into < 1 else "closed" if 1 / 3 <= into < 2 / 3 else "mixed"

    async def decide(self, order: Seen, key: str | None, who: str, request: Request) -> Entry:
        """In fine weather an upsert; in mixed weather a 500, a silence, or an upsert that nobody is told of."""
        if self.began is None:
            self.began = self.clock()
        async with self._desks:
            await self.work(0.03, 0.07)
        weather = self.weather(self.clock())
        if weather == "closed":
            return Entry(None, False, "closed while it came in")
        trouble = self.dice.choice(("500", "hang", "mute")) if weather == "mixed" else ""
        if trouble == "500":
            return Entry(500, False)
        if trouble == "hang":
            return Entry(None, False, "hung")
        row = key or f"row {len(self._rows)}"
        new = row not in self._rows
        self._rows.add(row)
        note = "" if new else "there already: nothing changed"
        return Entry(None if trouble else (201 if new else 200), new, "acted, never answered" if trouble else note)


class Stock(StandIn):
    """Reserves by order number, so a second call changes nothing. An item without a number makes it stumble."""

    def __init__(
        self, folder: Path, day: Friday, names: Mapping[str, str], tell: Tell, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(folder, day, names, tell, clock)
        self._reserved: set[int] = set()

    async def decide(self, order: Seen, key: str | None, who: str, request: Request) -> Entry:
        """500 for the item without a number, else a reservation."""
        await self.work(0.005, 0.015)
        if any(item.sku == BROKEN_SKU for item in order.line_items):
            return Entry(500, False, "an item without a number")
        new = order.id not in self._reserved
        self._reserved.add(order.id)
        return Entry(201 if new else 200, new, "" if new else "reserved already: nothing changed")


class Mail(StandIn):
    """Sends one mail per call, whoever asks how often."""

    async def decide(self, order: Seen, key: str | None, who: str, request: Request) -> Entry:
        """Always a mail."""
        await self.work(0.005, 0.015)
        return Entry(202, True)
