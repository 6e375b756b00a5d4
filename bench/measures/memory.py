"""Whether a worker grows with the jobs it has carried out."""

from __future__ import annotations

import time

from bench.figures import Figure, Measured, Scale, Target
from bench.grounds import Ground
from bench.ours import ours, peer_of
from bench.processes import needs_proc, say
from bench.roles import enqueue, start
from bench.running import counts_in

TITLE = "Memory of the worker process (resident set), early and late"
TARGET = Target("≤", 1.1)
REST = 1.0


def run(scale: Scale, ground: Ground) -> Measured:
    """The same worker, looked at twice."""
    needs_proc()
    few, many = 20_000, scale.pick(200_000, 60_000)
    measured = Measured("memory", TITLE)
    for contestant in ours(ground.store):
        seen = []
        for turn in range(scale.runs):
            say(f"memory, run {turn + 1} of {scale.runs}: {contestant}")
            seen.append(one_run(ground, contestant, few, many))
        measured.figures += _figures(peer_of(contestant).store, few, many, seen)
    return measured


def one_run(ground: Ground, contestant: str, few: int, many: int) -> tuple[int, int]:
    """Bytes after *few* and after *many* jobs."""
    with ground.place(contestant) as place:
        enqueue("fill", place.part(few))
        with start("work", place.part()) as worker:
            counts_in(place, few, worker.must_run)
            time.sleep(REST)
            early = worker.rss()
            enqueue("fill", place.part(many - few))
            counts_in(place, many, worker.must_run)
            time.sleep(REST)
            return early, worker.rss()


def _figures(store: str, few: int, many: int, seen: list[tuple[int, int]]) -> list[Figure]:
    return [
        Figure(f"{store}: after {few:,} jobs", tuple(early / 1e6 for early, _ in seen), "MB"),
        Figure(f"{store}: after {many:,} jobs", tuple(late / 1e6 for _, late in seen), "MB"),
        Figure(f"{store}: late ÷ early", tuple(late / early for early, late in seen), "×", TARGET),
    ]
