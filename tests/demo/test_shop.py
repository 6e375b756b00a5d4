import asyncio
import json
from collections import Counter
from pathlib import Path

import msgspec

from tests.demo.support import QUICK, until, within
from treppe.demo.friday import Day, signature
from treppe.demo.ledger import Posted, read
from treppe.demo.shop import Shop
from treppe.demo.wire import Answer, Request, Server

DAY = msgspec.structs.replace(QUICK, orders=40, twice=0.2, connections=4, shop_wait=0.001, shop_tries=3, trickle=200.0)


class Door:
    """Takes orders and remembers them; *trouble* answers the first tries of each event."""

    def __init__(self, *trouble: int | None) -> None:
        self.trouble = trouble
        self.tries: Counter[str] = Counter()
        self.orders: list[tuple[int, int]] = []
        self.inside = self.most_inside = 0
        self.signed = True

    async def handle(self, request: Request) -> Answer | None:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        await asyncio.sleep(0.001)
        self.inside -= 1
        self.signed &= request.headers["x-shopify-hmac-sha256"] == signature("s3cret", request.body)
        event = request.headers["x-shopify-event-id"]
        n = self.tries[event]
        self.tries[event] += 1
        if n < len(self.trouble):
            status = self.trouble[n]
            return Answer(status) if status else None
        body = json.loads(request.body)
        self.orders.append((body["customer"]["id"], body["customer_seq"]))
        return Answer(200)


def post_to(door: Door, folder: Path, story) -> list[Posted]:
    async def play() -> None:
        server = Server(door.handle)
        shop = Shop(Day(DAY, str(folder), {"shop": "s3cret"}, {}, {"door": await server.listen()}))
        await story(shop)
        await shop.leave()
        await server.close()

    within(20, play)
    return read(folder / "shop.jsonl", Posted)


def test_the_burst_is_signed_and_some_of_it_is_sent_twice(tmp_path: Path):
    door = Door()
    posted = post_to(door, tmp_path, lambda shop: shop.burst())
    twice = sum(order.twice for order in DAY.burst())
    assert twice > 0
    assert len(posted) == DAY.orders + twice
    assert sum(line.again for line in posted) == twice
    assert all(line.accepted and line.ms > 0 for line in posted)
    assert door.signed


def test_no_more_connections_than_a_shop_has_are_used(tmp_path: Path):
    door = Door()
    post_to(door, tmp_path, lambda shop: shop.burst())
    assert door.most_inside == DAY.connections


def test_events_of_a_customer_are_posted_in_their_order(tmp_path: Path):
    door = Door(503)
    post_to(door, tmp_path, lambda shop: shop.burst())
    latest: dict[int, int] = {}
    for customer, seq in door.orders:
        assert seq in (latest.get(customer, 0), latest.get(customer, 0) + 1)
        latest[customer] = seq


def test_what_is_refused_or_lost_is_posted_again(tmp_path: Path):
    posted = post_to(Door(503, None), tmp_path, lambda shop: shop.burst())
    assert {line.tries for line in posted if not line.again} == {3}
    assert all(line.accepted for line in posted)


def test_a_shop_gives_up_after_its_last_try(tmp_path: Path):
    door = Door(503, None, 503, 503, 503, 503)
    posted = post_to(door, tmp_path, lambda shop: shop.burst())
    assert not any(line.accepted for line in posted)
    assert {line.status for line in posted} == {503}
    assert door.orders == []


def test_the_trickle_goes_on_until_it_is_told_to_stop_and_leaves_nothing_half_done(tmp_path: Path):
    door = Door()

    async def story(shop: Shop) -> None:
        stop = asyncio.Event()
        trickle = asyncio.create_task(shop.trickle(stop))
        await until(lambda: len(door.orders) >= 5)
        stop.set()
        await trickle

    posted = post_to(door, tmp_path, story)
    assert len(posted) == len(door.orders) >= 5
    assert {line.seq for line in posted} == {1}
    assert len({line.customer for line in posted}) == len(posted)
