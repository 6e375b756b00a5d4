"""Whether a worker grows with the jobs it has carried out."""

from __future__ import annotations

import time

import msgspec

from bench.figures import Figure, Measured, Scale, Target
from bench.measures.end_to_end import counts_in
from bench.ours import peer_of, stores
from bench.processes import fresh_folder, needs_proc, say
from bench.roles import Part, enqueue, start

TITLE = "Memory of the worker process (resident set), early and late"
TARGET = Target("≤", 1.1)
REST = 1.0


def run(scale: Scale) -> Measured:
    """The same worker, looked at twice."""
    needs_proc()
    few, many = 20_000, scale.pick(200_000, 60_000)
    measured = Measured("memory", TITLE)
    for contestant in stores():
        seen = []
        for turn in range(scale.runs):
            say(f"memory, run {turn + 1} of {scale.runs}: {contestant}")
            seen.append(one_run(contestant, few, many))
        measured.figures += _figures(peer_of(contestant).store, few, many, seen)
    return measured


def one_run(contestant: str, few: int, many: int) -> tuple[int, int]:
    """Bytes after *few* and after *many* jobs."""
    with fresh_folder() as folder:
        part = Part(contestant, str(folder), n=few, marks=(few, many))
        enqueue("fill", part)
        with start("work", part) as worker:
            counts_in(folder, few, worker.must_run)
            time.sleep(REST)
            early = worker.rss()
            enqueue("fill", msgspec.structs.replace(part, n=many - few))
            counts_in(folder, many, worker.must_run)
            time.sleep(REST)
            return early, worker.rss()


def _figures(store: str, few: int, many: int, seen: list[tuple[int, int]]) -> list[Figure]:
    return [
        Figure(f"{store}: after {few:,} jobs", tuple(early / 1e6 for early, _ in seen), "MB"),
        Figure(f"{store}: after {many:,} jobs", tuple(late / 1e6 for _, late in seen), "MB"),
        Figure(f"{store}: late ÷ early", tuple(late / early for early, late in seen), "×", TARGET),
    ]
