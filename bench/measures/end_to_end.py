"""No-op jobs from the store through one worker process to their end, a second."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from bench import peers
from bench.figures import Figure, Measured, Scale, Target, rotated
from bench.jobs import Counted, counted_file
from bench.ours import PREFIX
from bench.processes import fresh_folder, say, wait_for
from bench.roles import Part, enqueue, start

TITLE = "End to end: no-op jobs, one worker process"
TARGET = Target("≥", 2.5)
PATIENCE = 300.0


class Run(msgspec.Struct):
    """One run of one contestant: jobs a second, and processor time of the worker for one job, in µs."""

    enqueued: float
    one_by_one: float
    executed: float
    cpu: float


def run(scale: Scale) -> Measured:
    """All contestants in turn, beginning with another one each time."""
    contestants = peers.contestants()
    jobs = scale.pick(100_000, 20_000)
    runs = rounds(contestants, jobs, scale.pick(2000, 500), scale.runs)
    measured = Measured("end_to_end", f"{TITLE}, {jobs:,} jobs", figures_of(runs))
    measured.notes = [_settings(contestant, jobs) for contestant in contestants]
    measured.notes += [f"{name} is not installed and was left out" for name in peers.absent()]
    return measured


def rounds(contestants: Sequence[str], jobs: int, singles: int, times: int) -> dict[str, list[Run]]:
    """What each contestant made, run by run."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for turn in range(times):
        for contestant in rotated(list(contestants), turn):
            say(f"end to end, run {turn + 1} of {times}: {contestant}")
            n = _jobs_of(contestant, jobs)
            runs[contestant].append(one_run(contestant, n, min(singles, n // 2)))
    return {contestant: runs[contestant] for contestant in contestants}


def one_run(contestant: str, jobs: int, singles: int) -> Run:
    """Enqueue them all, then start the worker, so that its start does not count."""
    with fresh_folder() as folder:
        part = Part(contestant, str(folder), n=jobs - singles, marks=(jobs,))
        bulk = enqueue("fill", part)
        one_by_one = enqueue("put", msgspec.structs.replace(part, n=singles))
        with start("work", part) as worker:
            counted = counts_in(folder, jobs, worker.must_run)
    per_job = counted.cpu / counted.jobs * 1e6
    return Run(bulk.per_second, one_by_one.per_second, counted.per_second, per_job)


def counts_in(folder: Path, jobs: int, must_run: Callable[[], None]) -> Counted:
    """The worker's count once so many jobs are at their end."""

    def look() -> Counted | None:
        must_run()
        file = counted_file(folder, jobs)
        return msgspec.json.decode(file.read_bytes(), type=Counted) if file.exists() else None

    return wait_for(f"the end of {jobs:,} jobs", look, PATIENCE)


def figures_of(runs: dict[str, list[Run]]) -> list[Figure]:
    """Rates of all, and the ratios, run by run, of ours to those of others."""
    figures: list[Figure] = []
    for contestant, made in runs.items():
        title = peers.variant_of(contestant).title
        figures.append(Figure(title, tuple(run.executed for run in made), "/s"))
        figures.append(Figure("  worker's CPU for one job", tuple(run.cpu for run in made), "µs"))
        figures.append(Figure("  enqueued in bulk", tuple(run.enqueued for run in made), "/s"))
        figures.append(Figure("  enqueued one by one", tuple(run.one_by_one for run in made), "/s"))
    for our in (contestant for contestant in runs if contestant.startswith(PREFIX)):
        figures += [ratio(runs, our, other) for other in runs if not other.startswith(PREFIX)]
    return figures


def ratio(runs: dict[str, list[Run]], our: str, other: str) -> Figure:
    """How much faster ours is, run by run."""
    ours, theirs = peers.variant_of(our), peers.variant_of(other)
    ratios = tuple(a.executed / b.executed for a, b in zip(runs[our], runs[other], strict=True))
    return Figure(f"{ours.title} ÷ {theirs.title}", ratios, "×", TARGET if not theirs.durable else None)


def _jobs_of(contestant: str, jobs: int) -> int:
    return min(jobs, peers.variant_of(contestant).most)


def _settings(contestant: str, jobs: int) -> str:
    variant = peers.variant_of(contestant)
    fewer = f" ({variant.most:,} jobs)" if variant.most < jobs else ""
    return f"{variant.title}: {variant.settings}{fewer}"
