"""How long after its enqueuing a job starts, when the worker had nothing to do."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from bench import peers
from bench.figures import Figure, Measured, Scale, Target, rotated, share
from bench.jobs import notes
from bench.ours import PREFIX
from bench.processes import Child, fresh_folder, say, wait_for
from bench.roles import Part, enqueue, start

TITLE = "Pick-up: from the call that enqueues to the start of the job, another process's idle worker"
TARGET = Target("≤", 10.0)
APART = 0.02
WARM = 5
PATIENCE = 60.0


class Waits(msgspec.Struct):
    """Milliseconds."""

    p50: float
    p99: float


def run(scale: Scale) -> Measured:
    """Durable enqueues of Treppe, and the peers at their defaults."""
    contestants = [name for name in peers.contestants() if not name.startswith("raw_")]
    jobs = scale.pick(200, 50)
    seen: dict[str, list[Waits]] = defaultdict(list)
    for turn in range(scale.runs):
        for contestant in rotated(contestants, turn):
            say(f"pick-up, run {turn + 1} of {scale.runs}: {contestant}")
            seen[contestant].append(one_run(contestant, jobs))
    figures = [figure for contestant in contestants for figure in _figures(contestant, seen[contestant])]
    return Measured("pick_up", f"{TITLE} ({jobs} jobs, {APART * 1000:g} ms apart)", figures)


def one_run(contestant: str, jobs: int) -> Waits:
    """A few to warm up, then so many one by one."""
    with fresh_folder() as folder:
        part = Part(contestant, str(folder), n=WARM, pause=APART, job="note")
        with start("work", part) as worker:
            enqueue("put", part)
            _starts(worker, part, WARM)
            enqueue("put", msgspec.structs.replace(part, n=jobs))
            told = _starts(worker, part, WARM + jobs)
    waits = [(started - sent) * 1000 for sent, started in told[WARM:]]
    return Waits(share(waits, 0.5), share(waits, 0.99))


def _starts(worker: Child, part: Part, n: int) -> list[tuple[float, float]]:
    def look() -> list[tuple[float, float]] | None:
        worker.must_run()
        told = notes(part.notes)
        return told if len(told) >= n else None

    return wait_for(f"the start of {n} jobs", look, PATIENCE)


def _figures(contestant: str, waits: list[Waits]) -> list[Figure]:
    title = peers.variant_of(contestant).title
    target = TARGET if contestant.startswith(PREFIX) else None
    return [
        Figure(f"{title}: p50", tuple(one.p50 for one in waits), "ms", target),
        Figure("  p99", tuple(one.p99 for one in waits), "ms"),
    ]
