"""How long after its enqueuing a job starts, when the worker had nothing to do."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from bench import peers
from bench.figures import Figure, Measured, Scale, Target, rotated, share
from bench.grounds import Ground
from bench.jobs import notes
from bench.ours import PREFIX
from bench.processes import Child, say, wait_for
from bench.roles import Part, enqueue, start
from bench.running import Troubles

TITLE = "Pick-up: from the call that enqueues to the start of the job, another process's idle worker"
TARGETS = {"sqlite": (Target("≤", 10.0), None), "postgres": (Target("≤", 3.0), Target("≤", 15.0))}
APART = 0.02
WARM = 5
PATIENCE = 60.0


class Waits(msgspec.Struct):
    """Milliseconds."""

    p50: float
    p99: float


def run(scale: Scale, ground: Ground) -> Measured:
    """Durable enqueues of Treppe, and the peers at their defaults."""
    everybody = peers.contestants(ground.store, scale.peers)
    contestants = [name for name in everybody if not peers.variant_of(name).limit]
    jobs, troubles = scale.pick(200, 50), Troubles()
    seen: dict[str, list[Waits]] = defaultdict(list)
    for turn in range(scale.runs):
        for contestant in rotated(troubles.without(contestants), turn):
            say(f"pick-up, run {turn + 1} of {scale.runs}: {contestant}")
            with troubles.noting(contestant):
                seen[contestant].append(one_run(ground, contestant, jobs))
    measured = Measured("pick_up", f"{TITLE} ({jobs} jobs, {APART * 1000:g} ms apart)", trouble=troubles.ours())
    for contestant in troubles.without(contestants):
        measured.figures += _figures(ground, contestant, seen[contestant])
    measured.notes = troubles.sentences()
    return measured


def one_run(ground: Ground, contestant: str, jobs: int) -> Waits:
    """A few to warm up, then so many one by one."""
    with ground.place(contestant) as place:
        part = place.part(WARM, pause=APART, job="note")
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


def _figures(ground: Ground, contestant: str, waits: list[Waits]) -> list[Figure]:
    title = peers.variant_of(contestant).title
    middle, slowest = TARGETS[ground.store] if contestant.startswith(PREFIX) else (None, None)
    return [
        Figure(f"{title}: p50", tuple(one.p50 for one in waits), "ms", middle, "pick-up, p50", title),
        Figure("  p99", tuple(one.p99 for one in waits), "ms", slowest),
    ]
