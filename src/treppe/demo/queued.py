"""The Friday with Treppe: door, workers and board as processes, one of them killed, and a human at the board."""

from __future__ import annotations

import asyncio
import time

from treppe.app import open_store
from treppe.demo.child import free_port
from treppe.demo.clerk import Clerk
from treppe.demo.friday import DESTINATIONS
from treppe.demo.ground import Ground
from treppe.demo.processes import Child, Failed
from treppe.demo.reconcile import Evidence, Kill
from treppe.demo.settings import KEY_VARIABLE, USER, treppe_toml
from treppe.demo.stage import Stage
from treppe.demo.wire import Client
from treppe.errors import StoreUnavailable
from treppe.eyes.measure import Figures
from treppe.job import Job
from treppe.policy.pace import Pacer
from treppe.store.protocol import Filter, Store

INSIDE = 2
"""So many calls are inside accounting when their worker is killed: one that has acted, and one that never will."""


async def play(stage: Stage, ground: Ground, restart_store: bool = False) -> Evidence:
    """Start Treppe, let the Friday happen, and bring home the evidence."""
    door = free_port()
    stage.ports({"door": door})
    settings = stage.folder / "treppe.toml"
    settings.write_text(treppe_toml(stage.day.friday, stage.day.ports, ground.url))
    up = await start_treppe(stage, "up")
    await ready(stage, door)
    store = await asyncio.to_thread(open_store, ground.url)
    try:
        queued = Queued(stage, store, Clerk(door, USER, stage.day.secrets["board"]))
        return await queued.play(up, ground if restart_store else None)
    finally:
        store.close()


async def start_treppe(stage: Stage, name: str) -> Child:
    """``treppe up`` or ``treppe work``, with an API key of its own for the remote systems."""
    key = next(key for key, owner in stage.day.keys.items() if owner == name)
    arguments = (name.partition("-")[0], "--config", str(stage.folder / "treppe.toml"))
    return await stage.children.start(name, "treppe", *arguments, variables={KEY_VARIABLE: key})


async def ready(stage: Stage, door: int) -> None:
    """Wait until the door answers, at most half a minute."""
    client = Client(door)
    for _ in range(300):
        stage.children.check()
        try:
            if (await client.call("GET", "/readyz")).good:
                return await client.close()
        except OSError:
            pass
        await asyncio.sleep(0.1)
    raise Failed("`treppe up` was not ready after 30 s: GET /readyz did not answer 200")


class Queued:
    """One run. The steps of :meth:`play` are its story; the chores go on beside it."""

    def __init__(self, stage: Stage, store: Store, clerk: Clerk) -> None:
        self.stage, self.friday, self.clerk = stage, stage.day.friday, clerk
        self.peak_backlog, self.peak_age = 0, 0.0
        self._store = store
        self._figures = Figures(store, Pacer({}), keep=0.5)
        self._shop: Child | None = None

    async def play(self, up: Child, restarts: Ground | None) -> Evidence:
        """From the first order to the last alert; with *restarts* its store is gone for a moment in the middle."""
        work = await start_treppe(self.stage, "work")
        await self.clerk.log_in()
        self.stage.chores += [self._measure, self._settle_by_hand, self._stop_the_shop_when_it_may]
        self._shop = await self.stage.start_own("shop")
        kill = await self._kill_inside_accounting(work)
        await self.stage.pause(self.friday.restart_after)
        again = await start_treppe(self.stage, "work-again")
        self.stage.screen.say(f"worker {again.pid} is started in its place")
        if restarts:
            await self._restart(restarts)
        await self.stage.until(self._all_done, "not everything had come to its end", self.friday.longest)
        await self._wait_for_alerts()
        await self.clerk.leave()
        await asyncio.gather(up.stop(), again.stop())
        return await self._evidence(kill)

    async def _kill_inside_accounting(self, worker: Child) -> Kill:
        enough = int(self.friday.orders * self.friday.kill_after)
        arrived = self.stage.arrived["accounting"]
        await self.stage.until(lambda: len(arrived) >= enough, "accounting had too few orders", self.friday.longest)
        control = Client(self.stage.day.ports["control"])
        trap = asyncio.create_task(control.call("POST", f"/trap/{worker.name}/{INSIDE}", patience=120))
        await self.stage.until(trap.done, "no call of the second worker was inside accounting", 90)
        await trap
        at = time.time()
        await worker.kill()
        self.stage.screen.say(f"worker {worker.pid} is killed with kill -9, inside {INSIDE} accounting calls")
        await control.close()
        return Kill(worker.name, at)

    async def _restart(self, ground: Ground) -> None:
        began = time.monotonic()
        await ground.restart()
        self.stage.screen.say(f"the store was stopped and is back after {time.monotonic() - began:.1f} s")

    async def _measure(self) -> None:
        try:
            self.stage.figures = now = await asyncio.to_thread(self._figures.summary)
        except StoreUnavailable:  # it is being restarted
            return
        self.peak_backlog = max(self.peak_backlog, now.open)
        self.peak_age = max(self.peak_age, now.oldest_age_s or 0.0)

    async def _settle_by_hand(self) -> None:
        if not self.stage.figures.unclear:
            return
        pressed = list((await self.clerk.settle(self._happened)).values())
        if pressed:
            words = f"{pressed.count('confirm')} happened, {pressed.count('revive')} to be done again"
            self.stage.screen.say(f"unclear jobs settled by hand, from the ledgers: {words}")

    def _happened(self, event: str, destination: str) -> bool:
        numbers = {line.event: line.order for line in self.stage.posted}
        return numbers.get(event) in self.stage.arrived[destination]

    async def _stop_the_shop_when_it_may(self) -> None:
        if self._shop and not self._shop.ending and self.stage.figures.queue("stock").dead:
            self._shop.finish()
            self.stage.screen.say("the order that always fails at stock is a dead letter; the shop may stop posting")

    def _all_done(self) -> bool:
        now, shop_ended = self.stage.figures, self._shop is not None and self._shop.ended
        return shop_ended and now.open == 0 and now.accepted >= self.stage.accepted * len(DESTINATIONS)

    async def _wait_for_alerts(self) -> None:
        """One that does not come breaks a promise, but not the run."""
        try:
            await self.stage.until(self._alerted, "alerts were missing", 30)
        except Failed as missing:
            self.stage.screen.say(str(missing))

    def _alerted(self) -> bool:
        events = [order.event for order in self.friday.burst() if order.number in self.friday.broken.values()]
        told = self.stage.told
        texts = [" ".join(one.text for one in told if one.channel == channel) for channel in ("webhook", "mail")]
        return all(event in text for event in events for text in texts)

    async def _evidence(self, kill: Kill) -> Evidence:
        await self.stage.look()
        return Evidence(
            self.friday,
            self.stage.posted,
            self.stage.lines,
            self.stage.told,
            await asyncio.to_thread(all_jobs, self._store),
            kill=kill,
            unclear_on_the_way=len(self.clerk.acts),
            peak_backlog=self.peak_backlog,
            peak_age=self.peak_age,
        )


def all_jobs(store: Store) -> list[Job]:
    """Every job; those that were claimed more than once, or failed, with their history."""
    jobs: list[Job] = []
    after: int | None = None
    while True:
        page = store.find(Filter(), after, 500)
        jobs += [(store.get(job.id) or job) if job.token > 1 or job.error else job for job in page.jobs]
        after = page.after
        if after is None:
            return jobs
