"""Worlds one after the other, until so many operations were made or a promise is broken."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import count
from typing import Any

import msgspec

from tests.sim.checker import Broken, check
from tests.sim.places import KINDS, Place
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


def run_seed(seed: int, place: Place) -> Ran:
    """One world, judged."""
    scenario = drawn(seed)
    world = World(scenario, place)
    final = world.run()
    broken = check(world.entries, final, scenario.limits, world.store.lease)
    return Ran(seed, world.operations, len(world.ids), dict(world.faults.counts), broken)


def run_until(operations: int, worlds: Iterator[Ran], on: Callable[[Sum], Any] = lambda total: None) -> Sum:
    """Worlds until *operations* were made in all, one is broken, or *on* has had enough."""
    total, began = Sum(), time.monotonic()
    for ran in worlds:
        total.add(ran)
        total.seconds = time.monotonic() - began
        if on(total) or total.failed or total.operations >= operations:
            break
    return total


def one_by_one(seed: int, place: Place) -> Iterator[Ran]:
    """Worlds from *seed* on, without end."""
    for one in count(seed):
        yield run_seed(one, place)


def side_by_side(seed: int, store: str, processes: int) -> Iterator[Ran]:
    """The same in several processes, in the order of their seeds."""
    seeds = count(seed)
    with ProcessPoolExecutor(processes) as pool:
        ahead = [pool.submit(_run_here, next(seeds), store) for _ in range(2 * processes)]
        try:
            while True:
                yield ahead.pop(0).result()
                ahead.append(pool.submit(_run_here, next(seeds), store))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@cache
def place_here(store: str) -> Place:
    """The place of this process; it is there until the process ends."""
    return KINDS[store]()


def _run_here(seed: int, store: str) -> Ran:
    return run_seed(seed, place_here(store))


def command(seed: int, store: str = "sqlite") -> str:
    """What repeats one world."""
    return f"python3 dev.py sim --seed {seed} --operations 1" + ("" if store == "sqlite" else f" --store {store}")
