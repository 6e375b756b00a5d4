"""The promotion Friday as a value: who orders what, how the outside world behaves, and which two orders are broken."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import random
import re
import uuid
from collections.abc import Iterator

import msgspec

from treppe.config.parse import say_duration

DESTINATIONS = ("crm", "accounting", "stock", "mail")
TAX_NUMBER, REFUSED_TAX_NUMBER = "DE136695976", "no idea"
SKU, BROKEN_SKU = "SOFA-3", ""
PER_SCALE = 5000


class Order(msgspec.Struct, frozen=True):
    """One order, and so one event of the shop. ``seq`` counts the orders of its customer from 1."""

    number: int
    event: str
    customer: int
    seq: int
    twice: bool = False
    tax_number: str = TAX_NUMBER
    sku: str = SKU

    @property
    def body(self) -> bytes:
        """What the shop posts, about 1 KiB, with every destination's own reading matter in it.

        >>> b'"customer_seq":1' in Order(7, "e", 3, 1).body
        True
        """
        lines = [
            {"sku": self.sku, "title": f"Sofa, colour {n}", "quantity": n, "price": f"{199 + n}.90", "taxable": True}
            for n in range(1, 8)
        ]
        customer = {"id": self.customer, "email": f"customer-{self.customer}@example.org", "tags": "promotion"}
        return msgspec.json.encode(
            {
                "id": self.number,
                "name": f"#{self.number}",
                "currency": "EUR",
                "total_price": "1427.30",
                "tax_number": self.tax_number,
                "customer_seq": self.seq,
                "customer": customer,
                "line_items": lines,
            }
        )


class Friday(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the day. Durations are seconds."""

    orders: int = 1000
    seed: int = 1
    twice: float = 0.03  # this share of the events is sent a second time
    connections: int = 24  # of the shop
    patience: float = 5.0  # of the shop, per webhook
    shop_tries: int = 8
    shop_wait: float = 0.5  # doubled with each try
    naive_tries: int = 3
    naive_patience: float = 5.0
    naive_trickle: float = 10.0  # without a queue, nothing tells the shop when to stop
    trickle: float = 5.0  # orders per second after the burst
    window: float = 15.0  # accounting
    allowed: int = 300
    penalty: float = 1.0  # each call while it is shut
    most_penalty: float = 15.0
    too_fast: float = 1.25  # what we configured, against what it allows
    healthy: float = 5.0  # CRM
    outage: float = 15.0
    crm_desks: int = 8
    hold: float = 60.0  # how long a stand-in that does not answer keeps the line open
    attempts: int = 3  # stock
    backoff: float = 0.5
    kill_after: float = 1 / 3  # of the orders at accounting
    restart_after: float = 3.0

    @property
    def rate(self) -> str:
        """What treppe.toml allows accounting: too much.

        >>> Friday().rate
        '375/15s'
        """
        return f"{round(self.allowed * self.too_fast)}/{say_duration(self.window)}"

    @property
    def refused(self) -> int:
        """The number of the order that accounting refuses for ever."""
        return 1001 + self.orders // 5

    @property
    def failing(self) -> int:
        """The number of the order that always ends in 500 at stock."""
        return 1001 + self.orders // 10

    @property
    def broken(self) -> dict[str, int]:
        """The destination at which an order is broken, with its number.

        >>> Friday(orders=100).broken
        {'accounting': 1021, 'stock': 1011}
        """
        return {"accounting": self.refused, "stock": self.failing}

    @property
    def longest(self) -> float:
        """No run takes longer than this: five times what accounting needs, and time for outage, lapse and alerts."""
        return 240.0 + 5.0 * self.orders * self.window / self.allowed

    def burst(self) -> list[Order]:
        """The orders of the burst, in the order they are made; a customer orders three times on average.

        >>> day = Friday(orders=100).burst()
        >>> len(day), day == Friday(orders=100).burst(), max(order.seq for order in day) > 1
        (100, True, True)
        """
        dice = random.Random(self.seed)
        made: dict[int, int] = {}
        orders = []
        for number in range(1001, 1001 + self.orders):
            alone = number in self.broken.values()
            customer = 900_000 + number if alone else 1 + dice.randrange(max(1, self.orders // 3))
            made[customer] = made.get(customer, 0) + 1
            orders.append(
                Order(
                    number,
                    self._event(number),
                    customer,
                    made[customer],
                    twice=dice.random() < self.twice,
                    tax_number=REFUSED_TAX_NUMBER if number == self.refused else TAX_NUMBER,
                    sku=BROKEN_SKU if number == self.failing else SKU,
                )
            )
        return orders

    def later(self) -> Iterator[Order]:
        """What goes on being ordered after the burst, each by a new customer."""
        number = 1001 + self.orders
        while True:
            yield Order(number, self._event(number), 500_000 + number, 1)
            number += 1

    def _event(self, number: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"friday-{self.seed}-{number}"))


def friday(orders: int, seed: int) -> Friday:
    """The day for so many orders. Above 5,000 the outside world grows along, so that a run takes minutes, not hours.

    >>> friday(1000, 1).allowed, friday(20_000, 1).allowed
    (300, 1200)
    """
    scale = math.ceil(orders / PER_SCALE)
    return Friday(orders=orders, seed=seed, allowed=300 * scale, crm_desks=8 * scale, trickle=5.0 * scale)


def event_in(id: str) -> str:
    """The shop's event id inside a longer one: the door adds topic and shop to it, and a job its destination.

    >>> event_in("shop:0e4a6b7c-1d2e-5f30-8a9b-0c1d2e3f4a5b/orders/create:mail")
    '0e4a6b7c-1d2e-5f30-8a9b-0c1d2e3f4a5b'
    """
    found = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", id)
    return found[0] if found else id


def signature(secret: str, body: bytes) -> str:
    """Shopify's: base64 of HMAC-SHA256 over the raw body (shopify.dev, "Verify the webhook")."""
    return base64.b64encode(hmac.digest(secret.encode(), body, hashlib.sha256)).decode()


class Day(msgspec.Struct, frozen=True):
    """What a process of the demo is told at its start: the day, where to write, and whom to call."""

    friday: Friday
    folder: str
    secrets: dict[str, str]
    keys: dict[str, str]  # API key -> the process that logs in with it
    ports: dict[str, int] = {}
