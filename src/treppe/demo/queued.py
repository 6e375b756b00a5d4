"""The Friday with Treppe: door, workers and board as processes, one of them killed, and a human at the board."""

from __future__ import annotations

import asyncio
import time

from treppe.app import open_store
from treppe.demo.child import free_port
from treppe.demo.clerk import Clerk
from treppe.demo.processes import Child, Failed
from treppe.demo.reconcile import Evidence, Kill
from treppe.demo.settings import KEY_VARIABLE, STORE, USER, treppe_toml
from treppe.demo.stage import Stage
from treppe.demo.wire import Client
from treppe.job import Job
from treppe.store.protocol import Filter, Store

INSIDE = 2
"""So many calls are inside accounting when their worker is killed: one that has acted, and one that never will."""


class Queued:
    """One run. The steps of :meth:`play` are its story."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.friday = stage, stage.day.friday
        self.door = free_port()
        self.clerk = Clerk(self.door, USER, stage.day.secrets["board"])
        self.peak_backlog, self.peak_age = 0, 0.0
        self._shop: Child | None = None
        self._keys = {name: key for key, name in stage.day.keys.items()}

    async def play(self) -> Evidence:
        """From the first order to the last alert."""
        treppe = [await self._start("up"), await self._start("work")]
        await self.clerk.log_in()
        self.stage.chores += [self._measure, self._settle_by_hand, self._stop_the_shop_when_it_may]
        self._shop = await self.stage.start_own("shop")
        kill = await self._kill_inside_accounting(treppe[1])
        await self.stage.pause(self.friday.restart_after)
        treppe[1] = await self._start("work-again")
        self.stage.screen.say(f"a new worker is started in its place: {treppe[1].pid}")
        await self.stage.until(self._all_done, "not everything had come to its end", self.friday.longest)
        await self._wait_for_alerts()
        for child in treppe:
            await child.stop()
        return self._evidence(kill)

    async def _start(self, name: str) -> Child:
        config = self.stage.folder / "treppe.toml"
        if not config.exists():
            self.stage.ports({"door": self.door})
            config.write_text(treppe_toml(self.friday, self.stage.day.ports))
        verb = name.partition("-")[0]
        variables = {KEY_VARIABLE: self._keys[name]}
        child = await self.stage.children.start(name, "treppe", verb, "--config", str(config), variables=variables)
        if verb == "up":
            await self._ready()
        return child

    async def _ready(self) -> None:
        client = Client(self.door)
        for _ in range(300):
            self.stage.children.check()
            try:
                if (await client.call("GET", "/readyz")).good:
                    return
            except OSError:
                pass
            await asyncio.sleep(0.1)
        raise Failed("`treppe up` was not ready after 30 s: GET /readyz did not answer 200")

    async def _kill_inside_accounting(self, worker: Child) -> Kill:
        enough = int(self.friday.orders * self.friday.kill_after)
        arrived = self.stage.arrived["accounting"]
        await self.stage.until(lambda: len(arrived) >= enough, "accounting had too few orders", self.friday.longest)
        control = Client(self.stage.day.ports["control"])
        trap = asyncio.create_task(control.call("POST", f"/trap/{worker.name}/{INSIDE}", patience=120))
        await self.stage.until(trap.done, "no call of the second worker was inside accounting", 90)
        at = time.time()
        await worker.kill()
        self.stage.screen.say(f"worker {worker.pid} is killed with kill -9, inside {INSIDE} accounting calls")
        return Kill(worker.name, at)

    async def _measure(self) -> None:
        self.stage.stats = stats = await self.clerk.stats()
        self.peak_backlog = max(self.peak_backlog, stats.open)
        self.peak_age = max(self.peak_age, stats.oldest_age_s or 0.0)

    async def _settle_by_hand(self) -> None:
        if not any(queue.unclear for queue in self.stage.stats.queues):
            return
        pressed = list((await self.clerk.settle(self._happened)).values())
        if pressed:
            words = f"{pressed.count('confirm')} happened, {pressed.count('revive')} to be done again"
            self.stage.screen.say(f"unclear jobs settled by hand, from the ledgers: {words}")

    def _happened(self, event: str, destination: str) -> bool:
        numbers = {line.event: line.order for line in self.stage.posted}
        return numbers.get(event) in self.stage.arrived[destination]

    async def _stop_the_shop_when_it_may(self) -> None:
        dead = any(queue.queue == "stock" and queue.dead for queue in self.stage.stats.queues)
        if dead and self._shop and not self._shop.ending:
            self._shop.finish()
            self.stage.screen.say("the order that always fails at stock is a dead letter; the shop may stop posting")

    def _all_done(self) -> bool:
        ended = self._shop is not None and self._shop.ended
        return ended and self.stage.stats.open == 0

    async def _wait_for_alerts(self) -> None:
        """A promise is broken when they don't come, but the run goes on."""
        try:
            await self.stage.until(self._alerted, "alerts were missing", 30)
        except Failed as missing:
            self.stage.screen.say(str(missing))

    def _alerted(self) -> bool:
        events = [order.event for order in self.friday.burst() if order.number in self.friday.broken.values()]
        texts = {
            name: " ".join(told.text for told in self.stage.told if told.channel == name)
            for name in ("webhook", "mail")
        }
        return all(event in text for event in events for text in texts.values())

    def _evidence(self, kill: Kill) -> Evidence:
        store = open_store(f"sqlite:///{self.stage.folder / STORE}")
        try:
            jobs = all_jobs(store)
        finally:
            store.close()
        return Evidence(
            self.friday,
            self.stage.posted,
            self.stage.lines,
            self.stage.told,
            jobs,
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
