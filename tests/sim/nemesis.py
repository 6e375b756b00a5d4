"""Who makes things go wrong beside the calls of the store: kills, stops, clocks, outages, moods of remote sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.sim import history
from tests.sim.target import Mood

if TYPE_CHECKING:
    from tests.sim.world import World


class Nemesis:
    """A few strands, each with one kind of mischief."""

    def __init__(self, world: World) -> None:
        self.world, self.random = world, world.random
        self.process = world.process("nemesis")

    def begin(self) -> None:
        scenario = self.world.scenario
        mischief: dict[Callable[[], None], float] = {
            self._kill: scenario.kills,
            self._stop: scenario.stops,
            self._step_the_clock: scenario.steps,
            self._outage: scenario.outages,
            self._mood: scenario.moods,
        }
        for act, every in mischief.items():
            if every:
                self._spawn(act, every)

    def _spawn(self, act: Callable[[], None], every: float) -> None:
        def go_on() -> None:
            while True:
                self.world.kernel.sleep(self.random.random() * 2 * every)
                if self.world.healed:
                    return
                self.world.faults.count(act.__name__.strip("_"))
                act()

        self.world.kernel.spawn(self.process, go_on, act.__name__)

    def _kill(self) -> None:
        """kill -9, or now and then SIGTERM."""
        if not self.world.working:
            return
        process, worker = self.random.choice(list(self.world.working.values()))
        if self.random.random() < 0.2:
            worker.stop()
        else:
            self.world.kernel.kill(process)

    def _stop(self) -> None:
        """SIGSTOP for up to two leases and a half."""
        if self.world.working:
            process, _ = self.random.choice(list(self.world.working.values()))
            process.stopped_until = self.world.kernel.now + self.random.choice((0.5, 5.0, 12.0, 25.0))

    def _step_the_clock(self) -> None:
        by = self.random.choice((-60.0, -5.0, -1.0, 1.0, 5.0, 30.0))
        before = self.world.clock()
        self.world.peak = max(self.world.peak, before)
        self.world.clock_off += by
        self.world.entries.append(history.Stepped(before, self.world.clock()))

    def _outage(self) -> None:
        """The store answers nobody, or one process does not reach it."""
        kernel, faults = self.world.kernel, self.world.faults
        names = list(self.world.working)
        one = self.random.choice(names) if names and self.random.random() < 0.6 else None
        if one is None:
            faults.away = True
        else:
            faults.cut_off.add(one)
        kernel.sleep(self.random.choice((0.5, 4.0, 15.0)))
        if one is None:
            faults.away = False
        else:
            faults.cut_off.discard(one)

    def _mood(self) -> None:
        target = self.random.choice(list(self.world.targets.values()))
        target.mood = self.random.choice([mood for mood in Mood if mood is not Mood.WELL])
        self.world.kernel.sleep(self.random.choice((2.0, 6.0, 15.0)))
        target.mood = Mood.WELL
