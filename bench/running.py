"""Worker processes that carry out what lies in a place, and what can be told about it afterwards."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from bench import peers
from bench.figures import Scale
from bench.grounds import Ground, Place
from bench.jobs import Counted, counted
from bench.processes import Child, Stuck, wait_for
from bench.roles import start

PATIENCE = 300.0
CAP = 90.0
"""Seconds that a peer gets for its jobs; what it has not done by then does not count."""

POLL = 0.005


class Done(msgspec.Struct):
    """So many jobs by workers. Rates are a second: until they had run, and until they were at their end; ``cpu`` is the
    workers' processor time for one job in µs, ``capped`` whether they were stopped."""

    jobs: int
    executed: float
    settled: float
    cpu: float
    capped: bool = False


def carry_out(ground: Ground, place: Place, jobs: int, processes: int = 1, cap: float = CAP) -> Done:
    """Start the workers and wait until so many jobs have run and none is left; their start does not count."""
    with ground.watch(place) as is_open, workers(place, processes) as team:
        wait_for("the first job", lambda: counted(Path(place.folder)) or None, PATIENCE)
        give_up = time.monotonic() + cap
        while (ran := sum_of(place)).jobs < jobs and time.monotonic() < give_up:
            _must_run(team)
            time.sleep(POLL)
        executed = time.monotonic()
        while is_open() and time.monotonic() < give_up:
            _must_run(team)
            time.sleep(POLL)
        settled, ran = time.monotonic(), sum_of(place)
    done = min(ran.jobs, jobs)
    rates = ((done - 1) / (executed - ran.first), (done - 1) / (settled - ran.first))
    return Done(done, *rates, ran.cpu / ran.jobs * 1e6, capped=settled >= give_up)


def carry_out_some(place: Place, jobs: int, cap: float = CAP) -> float:
    """Jobs a second until so many of all that wait have run."""
    with workers(place, 1) as team:

        def look() -> Counted | None:
            _must_run(team)
            ran = sum_of(place)
            return ran if ran.jobs >= jobs else None

        ran = wait_for(f"{jobs:,} jobs", look, cap)
        return (ran.jobs - 1) / (time.monotonic() - ran.first)


@contextmanager
def workers(place: Place, processes: int, job: str = "count") -> Iterator[list[Child]]:
    """So many worker processes, for the length of the block."""
    with ExitStack() as stack:
        yield [stack.enter_context(start("work", place.part(job=job))) for _ in range(processes)]


def counts_in(place: Place, jobs: int, must_run: Callable[[], None]) -> None:
    """Wait until so many jobs have run."""

    def look() -> bool | None:
        must_run()
        return sum_of(place).jobs >= jobs or None

    wait_for(f"the end of {jobs:,} jobs", look, PATIENCE)


def sum_of(place: Place) -> Counted:
    """What all workers together have carried out, and when the first of them began."""
    told = counted(Path(place.folder))
    first = min((one.first for one in told), default=0.0)
    return Counted(sum(one.jobs for one in told), first, sum(one.cpu for one in told))


def jobs_of(contestant: str, jobs: int, scale: Scale) -> int:
    """How many of the jobs this contestant gets: a slow peer fewer, and in a quick run fewer still."""
    name, most = contestant.partition("/")[0], peers.variant_of(contestant).most
    return min(jobs, most // 5 if scale.quick and peers.peer(name).needs else most)


class Troubles:
    """What went wrong with a contestant takes it out of the rest of the measure, and is told at the end."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    @contextmanager
    def noting(self, contestant: str) -> Iterator[None]:
        """Note what went wrong with this contestant and go on."""
        try:
            yield
        except Exception as error:
            if not isinstance(error, Stuck):
                traceback.print_exc()
            self.of[contestant] = str(error) or type(error).__name__

    def without(self, contestants: Sequence[str]) -> list[str]:
        """Those that are still in."""
        return [contestant for contestant in contestants if contestant not in self.of]

    def sentences(self) -> list[str]:
        """One for each that is out."""
        return [f"{peers.variant_of(one).title} could not be measured: {why}" for one, why in self.of.items()]

    def ours(self) -> str:
        """Why Treppe could not be measured; "" if it could."""
        return "; ".join(f"Treppe: {why}" for one, why in self.of.items() if one.startswith("treppe_"))


def _must_run(team: Sequence[Child]) -> None:
    for worker in team:
        worker.must_run()
