"""The Friday without a queue, for comparison: see :mod:`treppe.demo.naive`."""

from __future__ import annotations

import time

from treppe.demo.reconcile import Evidence
from treppe.demo.stage import Stage

TRICKLE = 10.0
"""The shop goes on posting for so many seconds after its burst; nothing here could tell it when to stop."""


async def play(stage: Stage) -> Evidence:
    """From the first order until the shop has given up what it cannot place."""
    naive = await stage.start_own("naive")
    stage.ports(await naive.announced())
    shop = await stage.start_own("shop")
    longest, orders = stage.day.friday.longest, stage.day.friday.orders
    await stage.until(lambda: len(stage.posted) >= orders, "the shop had not posted its burst", longest)
    ends = time.monotonic() + TRICKLE
    await stage.until(lambda: time.monotonic() > ends, "the trickle did not end", TRICKLE + 5)
    shop.finish()
    await stage.until(lambda: shop.ended, "the shop had not come to its end", longest)
    await naive.stop()
    await stage.look()
    return Evidence(stage.day.friday, stage.posted, stage.lines, stage.told, queued=False)
