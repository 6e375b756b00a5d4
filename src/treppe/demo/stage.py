"""What both ways of running the Friday share: a folder, the outside world, the ledgers as they grow, and the screen."""

from __future__ import annotations

import asyncio
import secrets
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from treppe.demo.friday import DESTINATIONS, Day, Friday
from treppe.demo.ledger import Line, Moment, Posted, Tail, Told
from treppe.demo.processes import Child, Children, Failed
from treppe.demo.screen import Screen, held
from treppe.eyes.measure import Summary

TICK = 0.25
NOTHING_YET = Summary(0.0, 0.0, 0, None, 0, 0, 0, 0)
PROCESSES = ("up", "work", "work-again")
"""Who logs in at the remote systems, each with an API key of its own."""


def a_day(friday: Friday, folder: Path) -> Day:
    """What every process is told, with fresh secrets."""
    made = {"shop": secrets.token_urlsafe(24), "board": secrets.token_urlsafe(18)}
    made["alerts"] = "whsec_" + b64encode(secrets.token_bytes(24)).decode()
    return Day(friday, str(folder), made, {secrets.token_hex(16): name for name in PROCESSES})


class Stage:
    """The run as far as it has come. Everything is read from the ledgers; nothing is assumed."""

    def __init__(self, day: Day, children: Children, screen: Screen) -> None:
        self.day, self.folder, self.children, self.screen = day, Path(day.folder), children, screen
        self.figures = NOTHING_YET
        self.posted: list[Posted] = []
        self.told: list[Told] = []
        self.lines: dict[str, list[Line]] = {name: [] for name in DESTINATIONS}
        self.arrived: dict[str, set[int]] = {name: set() for name in DESTINATIONS}
        self._accepted: set[int] = set()
        self._shop = Tail(self.folder / "shop.jsonl", Posted)
        self._heard = Tail(self.folder / "told.jsonl", Told)
        self._moments = Tail(self.folder / "moments.jsonl", Moment)
        self._tails = {name: Tail(self.folder / f"{name}.jsonl", Line) for name in DESTINATIONS}
        self.chores: list[Callable[[], Awaitable[None]]] = []

    @property
    def accepted(self) -> int:
        """How many orders the shop was told are safe."""
        return len(self._accepted)

    async def open(self) -> Child:
        """Start the outside world and take note of its ports."""
        outside = await self.start_own("outside")
        self.ports(await outside.announced())
        return outside

    def ports(self, more: dict[str, int]) -> None:
        """Take note of ports, for all processes that are started from now on."""
        self.day = msgspec.structs.replace(self.day, ports={**self.day.ports, **more})

    async def start_own(self, name: str) -> Child:
        """Start one of the demo's own processes."""
        told = self.folder / f"{name}.day.json"
        told.write_bytes(msgspec.json.encode(self.day))
        return await self.children.start(name, f"treppe.demo.{name}", str(told), own=True)

    async def until(self, condition: Callable[[], bool], what: str, longest: float) -> None:
        """Watch, draw and do the chores until *condition* holds; :class:`Failed` names *what* did not come."""
        ends = time.monotonic() + longest
        while not condition():
            if time.monotonic() > ends:
                raise Failed(f"after {longest:.0f} s {what}. {self.where_it_stands()}")
            await self.look()
            await asyncio.sleep(TICK)

    async def pause(self, seconds: float) -> None:
        """Watch for so many seconds."""
        ends = time.monotonic() + seconds
        await self.until(lambda: time.monotonic() >= ends, "a pause had not ended", seconds + 60)

    async def look(self) -> None:
        """Read what is new, do the chores, draw."""
        self.children.check()
        for line in self._shop.new():
            self.posted.append(line)
            self._accepted |= {line.order} if line.accepted else set()
        for name, tail in self._tails.items():
            new = tail.new()
            self.lines[name] += new
            self.arrived[name] |= {line.order for line in new if line.acted}
        self.told += self._heard.new()
        for moment in self._moments.new():
            self.screen.say(moment.text)
        for chore in self.chores:
            await chore()
        self.screen.show(self.accepted, {name: len(orders) for name, orders in self.arrived.items()}, self.figures)

    def where_it_stands(self) -> str:
        """One sentence for whoever must find out what hung."""
        arrived = ", ".join(f"{name} {len(orders)}" for name, orders in self.arrived.items())
        queues = [f"{queue.queue} ({held(queue)})" for queue in self.figures.queues if queue.held]
        stuck = f"{self.figures.open} jobs open, {self.figures.unclear} of them unclear"
        return f"Accepted {self.accepted}; delivered: {arrived}; {'; '.join([stuck, *queues])}"
