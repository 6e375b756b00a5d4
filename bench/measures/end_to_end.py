"""No-op jobs into the store, and from there through worker processes to their end, a second."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from bench import peers
from bench.figures import Figure, Measured, Scale, Target, rotated
from bench.grounds import Ground, PostgresGround
from bench.ours import PREFIX
from bench.processes import say
from bench.roles import enqueue
from bench.running import Done, Troubles, carry_out, jobs_of

TITLE = "End to end: no-op jobs, settled, one worker process"
NOT_DURABLE = Target("≥", 2.5)
ONE_BY_ONE, BULK = Target("≥", 1.2), Target("≥", 1.4)
BEST_PYTHON, GRAPHILE, RAW = Target("≥", 2.0), Target("≥", 0.95), Target("≥", 0.7)


class Run(msgspec.Struct):
    """One run of one contestant. Rates are jobs a second; ``two`` is with two worker processes, and ``wal`` the bytes
    that one job adds to the server's log from its claim to its end, where there is a server."""

    enqueued: float
    one_by_one: float
    done: Done
    two: Done | None = None
    wal: float = 0.0

    @property
    def executed(self) -> float:
        """Jobs a second until all were at their end."""
        return self.done.settled


Runs = Mapping[str, Sequence[Run]]


def run(scale: Scale, ground: Ground) -> Measured:
    """All contestants in turn, beginning with another one each time."""
    contestants = peers.contestants(ground.store, scale.peers)
    full, quick = (100_000, 20_000) if ground.store == "sqlite" else (200_000, 20_000)
    jobs, troubles = scale.pick(full, quick), Troubles()
    runs = rounds(ground, contestants, jobs, scale, troubles)
    figures = figures_of(runs) + (_sqlite_ratios(runs) if ground.store == "sqlite" else postgres_ratios(runs))
    measured = Measured("end_to_end", f"{TITLE}, {jobs:,} jobs", figures, trouble=troubles.ours())
    measured.notes = [_settings(contestant, jobs_of(contestant, jobs, scale)) for contestant in contestants]
    measured.notes += [*troubles.sentences(), *_capped(runs)]
    measured.notes += [f"{name} was left out: {why}" for name, why in peers.absent(ground.store).items()]
    return measured


def rounds(ground: Ground, contestants: Sequence[str], jobs: int, scale: Scale, troubles: Troubles) -> Runs:
    """What each contestant made, run by run."""
    runs: dict[str, list[Run]] = defaultdict(list)
    singles = scale.pick(2000, 500)
    for turn in range(scale.runs):
        for contestant in rotated(troubles.without(contestants), turn):
            say(f"end to end, run {turn + 1} of {scale.runs}: {contestant}")
            n = jobs_of(contestant, jobs, scale)
            with troubles.noting(contestant):
                runs[contestant].append(one_run(ground, contestant, n, min(singles, n // 2)))
    return {contestant: runs[contestant] for contestant in troubles.without(contestants)}


def one_run(ground: Ground, contestant: str, jobs: int, singles: int) -> Run:
    """Enqueue them all, then start the worker; on a server, once more with two."""
    with ground.place(contestant) as place:
        bulk = enqueue("fill", place.part(jobs - singles))
        one_by_one = enqueue("put", place.part(singles))
        ground.settle_down(place)
        before = ground.written() if isinstance(ground, PostgresGround) else 0
        made = Run(bulk.per_second, one_by_one.per_second, carry_out(ground, place, jobs))
        after = ground.written() if isinstance(ground, PostgresGround) else 0
    made.wal = (after - before) / made.done.jobs
    if isinstance(ground, PostgresGround):
        with ground.place(contestant) as place:
            enqueue("fill", place.part(jobs))
            ground.settle_down(place)
            made.two = carry_out(ground, place, jobs, processes=2)
    return made


def figures_of(runs: Runs) -> list[Figure]:
    """Rates of all."""
    figures: list[Figure] = []
    for contestant, made in runs.items():
        who = peers.variant_of(contestant).title
        figures.append(_rates(who, "end to end, one process", who, [run.executed for run in made]))
        if all(run.two for run in made):
            two = [run.two.settled for run in made if run.two]
            figures.append(_rates("  two worker processes", "end to end, two processes", who, two))
        figures.append(Figure("  worker's CPU for one job", tuple(run.done.cpu for run in made), "µs"))
        if all(run.wal for run in made):
            figures.append(Figure("  log written for one job, worker's part", tuple(run.wal for run in made), "bytes"))
        figures.append(_rates("  enqueued in bulk", "enqueued in bulk", who, [run.enqueued for run in made]))
        singles = [run.one_by_one for run in made]
        figures.append(_rates("  enqueued one by one", "enqueued one by one", who, singles))
    return figures


def _rates(name: str, chart: str, who: str, rates: Sequence[float]) -> Figure:
    return Figure(name, tuple(rates), "/s", chart=chart, who=who)


def _sqlite_ratios(runs: Runs) -> list[Figure]:
    return [ratio(runs, our, other) for our in _ours(runs) for other in runs if not other.startswith(PREFIX)]


def ratio(runs: Runs, our: str, other: str) -> Figure:
    """How much faster ours is, run by run."""
    return _to(runs, our, peers.variant_of(other).title, [other], _not_durable(other), "executed")


def postgres_ratios(runs: Runs) -> list[Figure]:
    """Ours to the best of the peers in the same run; for enqueuing, the kind of task makes no difference."""
    ways = {name: peers.variant_of(name) for name in runs if not name.startswith(PREFIX)}
    every = [name for name, way in ways.items() if not way.limit]
    python = [name for name in every if ways[name].language == "Python"]
    raw = [name for name, way in ways.items() if way.limit]
    node = [name for name in every if name.startswith("graphile")]
    ours = _ours(runs)
    figures = [
        *(_to(runs, our, "best peer, enqueued one by one", every, ONE_BY_ONE, "one_by_one") for our in ours[:1]),
        *(_to(runs, our, "best peer, enqueued in bulk", every, BULK, "enqueued") for our in ours[:1]),
    ]
    for our in ours:
        figures.append(_to(runs, our, "best Python peer", python, BEST_PYTHON, "executed"))
        figures.append(_to(runs, our, "Graphile Worker", node, GRAPHILE, "executed"))
        figures.append(_to(runs, our, "bare psycopg", raw, RAW, "executed"))
    return [figure for figure in figures if figure.runs]


def _to(runs: Runs, our: str, name: str, others: list[str], target: Target | None, what: str) -> Figure:
    best = [max(getattr(run, what) for run in turn) for turn in zip(*(runs[one] for one in others), strict=True)]
    mine = [getattr(run, what) for run in runs[our]]
    ratios = tuple(a / b for a, b in zip(mine, best, strict=True)) if best else ()
    return Figure(f"{peers.variant_of(our).title} ÷ {name}", ratios, "×", target)


def _ours(runs: Runs) -> list[str]:
    return sorted((name for name in runs if name.startswith(PREFIX)), reverse=True)


def _not_durable(contestant: str) -> Target | None:
    return None if peers.variant_of(contestant).durable else NOT_DURABLE


def _capped(runs: Runs) -> list[str]:
    capped = [
        name for name, made in runs.items() if any(run.done.capped or (run.two and run.two.capped) for run in made)
    ]
    return [f"{peers.variant_of(name).title} was stopped before all of its jobs were at their end" for name in capped]


def _settings(contestant: str, jobs: int) -> str:
    variant = peers.variant_of(contestant)
    needs = peers.peer(contestant.partition("/")[0]).needs
    return f"{variant.title}: {variant.settings} ({jobs:,} jobs{f'; {needs}' if needs else ''})"
