"""Worlds one after the other, until so many operations were made or a promise is broken."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any

import msgspec

from tests.sim import places
from tests.sim.checker import Broken, check
from tests.sim.scenario import drawn
from tests.sim.world import World

CRASHES = ("kill", "crash_before", "crash_after", "poison")


class Ran(msgspec.Struct):
    """What one world came to."""

    seed: int
    operations: int
    jobs: int
    faults: dict[str, int]
    broken: list[Broken]


class Sum(msgspec.Struct):
    """What many worlds came to."""

    worlds: int = 0
    operations: int = 0
    jobs: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: float = 0.0
    failed: Ran | None = None

    def add(self, ran: Ran) -> None:
        self.worlds += 1
        self.operations += ran.operations
        self.jobs += ran.jobs
        self.faults.update(ran.faults)
        self.failed = ran if ran.broken else None

    @property
    def crashes(self) -> int:
        return sum(self.faults[name] for name in CRASHES)


def run_seed(seed: int, store: str = "sqlite") -> Ran:
    """One world, judged."""
    scenario = drawn(seed)
    world = World(scenario, _place(store))
    final = world.run()
    broken = check(world.entries, final, scenario.limits, world.store.lease)
    return Ran(seed, world.operations, len(world.ids), dict(world.faults.counts), broken)


def run_until(operations: int, seed: int, store: str = "sqlite", processes: int = 1, on: Callable[[Sum], Any] = lambda total: None) -> Sum:
    """Worlds from *seed* on, until *operations* were made in all, one is broken, or *on* has had enough."""
    total, began = Sum(), time.monotonic()
    for ran in _worlds(seed, store, processes):
        total.add(ran)
        total.seconds = time.monotonic() - began
        if on(total) or total.failed or total.operations >= operations:
            return total
    raise AssertionError("there is always a next seed")


def _worlds(seed: int, store: str, processes: int) -> Iterator[Ran]:
    if processes == 1:
        while True:
            yield run_seed(seed, store)
            seed += 1
    with ProcessPoolExecutor(processes) as pool:
        ahead = [pool.submit(run_seed, seed + i, store) for i in range(2 * processes)]
        seed += len(ahead)
        try:
            while True:
                yield ahead.pop(0).result()
                ahead.append(pool.submit(run_seed, seed, store))
                seed += 1
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@cache
def _place(store: str) -> Any:
    """The place of this process; it is there until the process ends."""
    return places.KINDS[store]()


def command(seed: int, store: str) -> str:
    """What repeats one world."""
    return f"python3 dev.py sim --seed {seed} --operations 1" + ("" if store == "sqlite" else f" --store {store}")


def cores() -> int:
    return os.cpu_count() or 1

