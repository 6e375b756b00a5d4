"""The shop, a process of its own: it posts signed orders, some twice, and tries again like a shop when it must.

Run as ``python -m treppe.demo.shop day.json``: first the burst, then a trickle until its stdin is closed.
A customer's events are posted one after the other, because nobody else can know their order.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from treppe.demo.child import the_day, until_told_to_stop
from treppe.demo.friday import Day, Order, signature
from treppe.demo.ledger import Ledger, Moment, Posted
from treppe.demo.wire import Client


class Shop:
    """Posts orders to the door and keeps a ledger of what it was answered."""

    def __init__(self, day: Day) -> None:
        folder = Path(day.folder)
        self._day, self._secret = day.friday, day.secrets["shop"]
        self._client = Client(day.ports["door"])
        self._connections = asyncio.Semaphore(day.friday.connections)
        self._ledger: Ledger[Posted] = Ledger(folder / "shop.jsonl")
        self._moments: Ledger[Moment] = Ledger(folder / "moments.jsonl")

    async def burst(self) -> None:
        """Everything at once, over as many connections as a shop opens."""
        by_customer: defaultdict[int, list[Order]] = defaultdict(list)
        for order in self._day.burst():
            by_customer[order.customer].append(order)
        began = time.time()
        async with asyncio.TaskGroup() as customers:
            for orders in by_customer.values():
                customers.create_task(self._one_after_the_other(orders))
        text = f"the shop has posted its burst of {self._day.orders} orders in {time.time() - began:.1f} s"
        self._moments.write(Moment(time.time(), text))

    async def trickle(self, stop: asyncio.Event) -> None:
        """One order after the other until *stop* is set; what is under way then is brought to its end."""
        async with asyncio.TaskGroup() as under_way:
            for order in self._day.later():
                under_way.create_task(self.post(order))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), 1 / self._day.trickle)
                    break

    async def post(self, order: Order, again: bool = False) -> None:
        """Post one event until it is accepted, at most ``shop_tries`` times; then write down how it went."""
        for tries in range(1, self._day.shop_tries + 1):
            async with self._connections:
                began = time.time()
                status = await self._try(order)
                ms = (time.time() - began) * 1e3
            line = Posted(began, order.number, order.event, order.customer, order.seq, status, ms, tries, again)
            if line.accepted:
                break
            await asyncio.sleep(min(self._day.shop_wait * 2**tries, 8.0))
        self._ledger.write(line)

    async def leave(self) -> None:
        """Drop the connections."""
        await self._client.close()

    async def _one_after_the_other(self, orders: Iterable[Order]) -> None:
        for order in orders:
            await self.post(order)
            if order.twice:
                await self.post(order, again=True)

    async def _try(self, order: Order) -> int:
        body = order.body
        headers = {
            "content-type": "application/json",
            "x-shopify-topic": "orders/create",
            "x-shopify-shop-domain": "friday.example.org",
            "x-shopify-event-id": order.event,
            "x-shopify-webhook-id": order.event,
            "x-shopify-hmac-sha256": signature(self._secret, body),
        }
        try:
            return (await self._client.call("POST", "/in/shop", headers, body, self._day.patience)).status
        except OSError:
            return 0


async def run(day: Day) -> None:
    """The burst, then the trickle until told to stop."""
    shop, stop = Shop(day), asyncio.Event()
    end = asyncio.create_task(until_told_to_stop())
    end.add_done_callback(lambda _: stop.set())
    await shop.burst()
    await shop.trickle(stop)


if __name__ == "__main__":
    asyncio.run(run(the_day()))
