"""The outside world, a process of its own: four remote systems, and the inbox of the human who is to be told.

Run as ``python -m treppe.demo.outside day.json``; prints its ports as one JSON line, ends when its stdin does.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from treppe.demo.child import free_port, the_day, until_told_to_stop
from treppe.demo.friday import Day
from treppe.demo.inbox import AlertHook, MailSink
from treppe.demo.ledger import Ledger, Moment, Told
from treppe.demo.standins import Accounting, Crm, Mail, StandIn, Stock
from treppe.demo.wire import Answer, Request, Server

WEATHER = {
    "mixed": "the CRM is in trouble: it answers 500, hangs, or acts without a word",
    "closed": "the CRM is down: its port refuses connections",
    "fine": "the CRM is well again",
}

S = TypeVar("S", bound=StandIn)


class Outside:
    """All of it, each system on a port of its own."""

    def __init__(self, day: Day) -> None:
        self._folder, self._friday, self._keys = Path(day.folder), day.friday, day.keys
        self._moments: Ledger[Moment] = Ledger(self._folder / "moments.jsonl")
        self._told: Ledger[Told] = Ledger(self._folder / "told.jsonl")
        self.accounting, self.crm = self._make(Accounting), self._make(Crm)
        remotes: tuple[StandIn, ...] = (self.accounting, self.crm, self._make(Stock), self._make(Mail))
        self.servers = {remote.name: Server(remote.handle) for remote in remotes}
        self.servers["alerts"] = Server(AlertHook(self._told, day.secrets["alerts"]).handle)
        self.servers["control"] = Server(self.control)

    def tell(self, text: str) -> None:
        """Write down a moment for whoever watches."""
        self._moments.write(Moment(time.time(), text))

    async def open(self) -> dict[str, int]:
        """Open every port. The CRM's is one that the system hands to nobody else while it is closed."""
        ports = {"smtp": await MailSink(self._told).listen()}
        for name, server in self.servers.items():
            ports[name] = await server.listen(free_port() if name == "crm" else 0)
        return ports

    async def control(self, request: Request) -> Answer:
        """``POST /trap/NAME/N`` answers once N calls of that process are inside accounting, for good."""
        _, _trap, who, calls = request.path.split("/")
        await self.accounting.set_trap(who, int(calls)).full.wait()
        return Answer(200)

    async def weather(self) -> None:
        """Close and open the CRM's socket as its weather wants it, and tell."""
        before = "fine"
        while True:
            await asyncio.sleep(0.02)
            now = self.crm.weather(time.time())
            if now == before:
                continue
            self.tell(WEATHER[now])
            if now == "closed":
                self.servers["crm"].refuse()
            elif before == "closed":
                await self.servers["crm"].listen()
            before = now

    def _make(self, kind: type[S]) -> S:
        return kind(self._folder, self._friday, self._keys, self.tell)


async def run(day: Day) -> None:
    """Open the ports, say which, and keep them open until told to stop."""
    outside = Outside(day)
    sys.stdout.write(msgspec.json.encode(await outside.open()).decode() + "\n")
    sys.stdout.flush()
    weather, end = asyncio.create_task(outside.weather()), asyncio.create_task(until_told_to_stop())
    await asyncio.wait((weather, end), return_when=asyncio.FIRST_COMPLETED)
    if weather.done():
        weather.result()
    weather.cancel()


if __name__ == "__main__":
    asyncio.run(run(the_day()))
