"""The Friday without a queue, for comparison: see :mod:`treppe.demo.naive`."""

from __future__ import annotations

from treppe.demo.reconcile import Evidence
from treppe.demo.stage import Stage


async def play(stage: Stage) -> Evidence:
    """From the first order until the shop has given up what it cannot place."""
    naive = await stage.start_own("naive")
    stage.ports(await naive.announced())
    shop = await stage.start_own("shop")
    day = stage.day.friday
    await stage.until(lambda: len(stage.posted) >= day.orders, "the shop had not posted its burst", day.longest)
    await stage.pause(day.naive_trickle)
    shop.finish()
    await stage.until(lambda: shop.ended, "the shop had not come to its end", day.longest)
    await naive.stop()
    await stage.look()
    return Evidence(stage.day.friday, stage.posted, stage.lines, stage.told, queued=False)
