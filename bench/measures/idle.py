"""What a worker with nothing to do costs, while a hundred queues hold work for tomorrow."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack

import msgspec

from bench import peers
from bench.figures import Figure, Measured, Scale, Target
from bench.grounds import Ground, Place, PostgresGround
from bench.ours import PREFIX, once, peer_of
from bench.processes import Child, needs_proc, say
from bench.roles import enqueue, start
from bench.running import Troubles, counts_in
from treppe.app import Treppe

TITLE = "Idle worker: what it costs"
CPU, QUERIES = Target("<", 0.5), Target("≤", 1.5)
QUEUES = 100
REST = 3.0


class Cost(msgspec.Struct):
    """Percent of a core, and statements a second (BEGIN, COMMIT and LISTEN not counted) where there is a server."""

    cpu: float
    queries: float | None = None


def run(scale: Scale, ground: Ground) -> Measured:
    """All workers rest at the same time, as none of them disturbs another."""
    needs_proc()
    seconds, troubles = float(scale.pick(20, 5)), Troubles()
    everybody = once(peers.contestants(ground.store, scale.peers))
    queues = [name for name in everybody if not peers.variant_of(name).limit]
    contestants = [name for name in queues if ground.store != "sqlite" or name.startswith(PREFIX)]
    seen: dict[str, list[Cost]] = defaultdict(list)
    for turn in range(scale.runs):
        say(f"idle, run {turn + 1} of {scale.runs}")
        for contestant, cost in one_run(ground, troubles.without(contestants), seconds, troubles).items():
            seen[contestant].append(cost)
    title = f"{TITLE} over {seconds:g} s (Treppe: {QUEUES} queues with scheduled jobs)"
    measured = Measured("idle", title, trouble=troubles.ours(), notes=troubles.sentences())
    for contestant in troubles.without(contestants):
        measured.figures += figures_of(ground, contestant, seen[contestant])
    return measured


def one_run(ground: Ground, contestants: Sequence[str], seconds: float, troubles: Troubles) -> dict[str, Cost]:
    """What each of them took."""
    with ExitStack() as stack:
        resting: dict[str, tuple[Place, Child]] = {}
        for contestant in contestants:
            with troubles.noting(contestant):
                place = stack.enter_context(ground.place(contestant))
                resting[contestant] = place, _at_rest(ground, place, stack)
        time.sleep(REST)
        before, began = {name: _used(ground, *one) for name, one in resting.items()}, time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        return {name: _cost(before[name], _used(ground, *one), took) for name, one in resting.items()}


def figures_of(ground: Ground, contestant: str, costs: Sequence[Cost]) -> list[Figure]:
    """Statements where there is a server; there, processor time is told only."""
    ours, who = contestant.startswith(PREFIX), peers.variant_of(contestant).title
    cpu = tuple(cost.cpu for cost in costs)
    if ground.store == "sqlite":
        return [Figure(f"{peer_of(contestant).store}: worker at rest", cpu, "%", CPU)]
    queries = tuple(cost.queries or 0.0 for cost in costs)
    return [
        Figure(f"{who}: statements", queries, "/s", QUERIES if ours else None, "idle: statements a second", who),
        Figure("  of a core", cpu, "%"),
    ]


def _at_rest(ground: Ground, place: Place, stack: ExitStack) -> Child:
    if isinstance(ground, PostgresGround):
        ground.count_statements(place)
    enqueue("fill", place.part(1))
    worker = stack.enter_context(start("work", place.part()))
    counts_in(place, 1, worker.must_run)
    if place.contestant.startswith(PREFIX):
        _schedule(peer_of(place.contestant).url_of(place.where))
    return worker


def _schedule(url: str) -> None:
    """One job for tomorrow in each of many queues."""
    app = Treppe(url)
    task = app.task(name="tomorrow")(_nothing)
    for n in range(QUEUES):
        task.using(queue=f"tomorrow:{n}", delay="1d").enqueue()
    app.store.close()


def _used(ground: Ground, place: Place, worker: Child) -> tuple[float, int | None]:
    worker.must_run()
    return worker.cpu(), ground.statements(place) if isinstance(ground, PostgresGround) else None


def _cost(before: tuple[float, int | None], after: tuple[float, int | None], seconds: float) -> Cost:
    queries = None if before[1] is None or after[1] is None else (after[1] - before[1]) / seconds
    return Cost((after[0] - before[0]) / seconds * 100, queries)


def _nothing() -> None:
    """Never carried out."""
