"""Whether a snapshot that somebody holds, so that no dead row can be removed, slows the jobs down."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench import peers
from bench.figures import Figure, Measured, Scale, Target, rotated
from bench.grounds import Ground, Place, connect
from bench.ours import PREFIX, once
from bench.processes import say
from bench.roles import enqueue
from bench.running import Troubles, carry_out, jobs_of

TITLE = "A snapshot held: jobs a second with it and without, one worker process"
TARGET = Target("≥", 0.85)
JOBS = (200_000, 20_000)


def run(scale: Scale, ground: Ground) -> Measured:
    """With and without in turn, in pairs."""
    contestants, troubles = once(peers.contestants(ground.store, scale.peers)), Troubles()
    rates: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for turn in range(scale.runs):
        for contestant in rotated(troubles.without(contestants), turn):
            say(f"snapshot held, run {turn + 1} of {scale.runs}: {contestant}")
            jobs = jobs_of(contestant, scale.pick(*JOBS), scale)
            with troubles.noting(contestant):
                rates[contestant].append(one_pair(ground, contestant, jobs, held_first=turn % 2 == 1))
    measured = Measured("snapshot", f"{TITLE}, {scale.pick(*JOBS):,} jobs", trouble=troubles.ours())
    for contestant in troubles.without(contestants):
        measured.figures += _figures(contestant, rates[contestant])
    measured.notes = ["slow peers got fewer jobs, as end to end: so it cost them less", *troubles.sentences()]
    return measured


def one_pair(ground: Ground, contestant: str, jobs: int, held_first: bool) -> tuple[float, float]:
    """Jobs a second without the snapshot, and with it."""
    rates = {held: one_run(ground, contestant, jobs, held) for held in (held_first, not held_first)}
    return rates[False], rates[True]


def one_run(ground: Ground, contestant: str, jobs: int, held: bool) -> float:
    """Jobs a second."""
    with ground.place(contestant) as place:
        enqueue("fill", place.part(jobs))
        ground.settle_down(place)
        with snapshot(place, held):
            return carry_out(ground, place, jobs).settled


@contextmanager
def snapshot(place: Place, held: bool) -> Iterator[None]:
    """Somebody's long report in the same database."""
    if not held:
        yield
        return
    connection = connect(place.where)
    try:
        connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM pg_class")
        yield
    finally:
        connection.close()


def _figures(contestant: str, rates: Sequence[tuple[float, float]]) -> list[Figure]:
    title = peers.variant_of(contestant).title
    target = TARGET if contestant.startswith(PREFIX) else None
    ratios = tuple(held / free for free, held in rates)
    return [
        Figure(f"{title}: with it", tuple(held for _, held in rates), "/s"),
        Figure("  ÷ without", ratios, "×", target, "a snapshot held: share of the rate without", title),
    ]
