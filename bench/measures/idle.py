"""What a worker with nothing to do costs: processor time, while a hundred queues hold work for tomorrow."""

from __future__ import annotations

import time

from bench.figures import Figure, Measured, Scale, Target
from bench.measures.end_to_end import counts_in
from bench.ours import peer_of, stores
from bench.processes import fresh_folder, needs_proc, say
from bench.roles import Part, enqueue, start
from treppe.app import Treppe

TITLE = "Idle worker: share of one core"
TARGET = Target("<", 0.5)
QUEUES = 100
REST = 3.0


def run(scale: Scale) -> Measured:
    """Processor time over a span of doing nothing."""
    needs_proc()
    seconds = float(scale.pick(20, 5))
    measured = Measured("idle", f"{TITLE} over {seconds:g} s ({QUEUES} queues with scheduled jobs)")
    for contestant in stores():
        seen = []
        for turn in range(scale.runs):
            say(f"idle, run {turn + 1} of {scale.runs}: {contestant}")
            seen.append(one_run(contestant, seconds))
        measured.figures.append(Figure(f"{peer_of(contestant).store}: worker at rest", tuple(seen), "%", TARGET))
    return measured


def one_run(contestant: str, seconds: float) -> float:
    """Percent of a core."""
    with fresh_folder() as folder:
        part = Part(contestant, str(folder), n=1, marks=(1,))
        enqueue("fill", part)
        with start("work", part) as worker:
            counts_in(folder, 1, worker.must_run)
            _schedule(peer_of(contestant).url_of(folder))
            time.sleep(REST)
            before, began = worker.cpu(), time.monotonic()
            time.sleep(seconds)
            return (worker.cpu() - before) / (time.monotonic() - began) * 100


def _schedule(url: str) -> None:
    """One job for tomorrow in each of many queues."""
    app = Treppe(url)
    task = app.task(name="tomorrow")(_nothing)
    for n in range(QUEUES):
        task.using(queue=f"tomorrow:{n}", delay="1d").enqueue()
    app.store.close()


def _nothing() -> None:
    """Never carried out."""
