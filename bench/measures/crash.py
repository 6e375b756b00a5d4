"""kill -9 of a worker with a batch in hand: how long until its jobs run again."""

from __future__ import annotations

import time
from contextlib import closing, nullcontext

import msgspec

from bench.figures import Figure, Measured, Scale, Target
from bench.jobs import notes
from bench.ours import peer_of, stores
from bench.processes import Child, fresh_folder, say, wait_for
from bench.roles import Part, enqueue, start
from treppe.app import open_store
from treppe.store.sqlite import SQLiteStore

TITLE = "kill -9 of a worker with a batch in hand: until all of it has run again"
WARM = 2000
JOBS = 300
REST = 2.0
PATIENCE = 60.0


class Again(msgspec.Struct):
    """Seconds from the kill until the first and the last of the *held* jobs ran again; and the store's lease."""

    held: int
    lease: float
    first: float
    last: float


def run(scale: Scale) -> Measured:
    """Once with another worker there all the time, once with one that is started after the kill."""
    measured, runs = Measured("crash", TITLE), scale.pick(scale.runs, 1)
    for contestant in stores():
        for name, standby in (("another worker is there", True), ("one is started then", False)):
            seen = []
            for turn in range(runs):
                say(f"crash, run {turn + 1} of {runs}: {contestant}, {name}")
                seen.append(one_run(contestant, standby))
            measured.figures += figures_of(f"{peer_of(contestant).store}, {name}", seen)
    return measured


def one_run(contestant: str, standby: bool) -> Again:
    """The killed worker's jobs never come to an end; the other one's jobs of the same task end at once."""
    with fresh_folder() as folder:
        first = Part(contestant, str(folder), n=WARM, job="hold", file="first")
        second = msgspec.structs.replace(first, job="note", file="second")
        enqueue("fill", first)
        with start("work", first) as killed:
            if not standby:
                return _kill(killed, first, second, starts_after=True)
            with start("work", second):
                time.sleep(_lease(second) + REST)  # a worker that has just started lets nothing lapse
                return _kill(killed, first, second)


def _kill(killed: Child, first: Part, second: Part, starts_after: bool = False) -> Again:
    wait_for("the first jobs", lambda: _open(first) == 0 or None, PATIENCE)
    enqueue("put", msgspec.structs.replace(first, n=JOBS))
    wait_for("all jobs in hand", lambda: _waiting(second) == 0 or None, PATIENCE)
    others, at = len(_lasting(second)), time.monotonic()
    killed.kill()
    with start("work", second) if starts_after else nullcontext():
        told = wait_for("the jobs again", lambda: _all(_lasting(second)), PATIENCE)
    return Again(JOBS - others, _lease(second), told[others][1] - at, told[-1][1] - at)


def _lasting(part: Part) -> list[tuple[float, float]]:
    """The starts of the jobs that the killed worker does not come to an end with."""
    return [note for note in notes(part.notes) if note[0] > 0]


def _all(told: list[tuple[float, float]]) -> list[tuple[float, float]] | None:
    return told if len({sent for sent, _ in told}) >= JOBS else None


def _open(part: Part) -> int:
    with _store(part) as store:
        return store.backlog().open


def _waiting(part: Part) -> int:
    """Jobs that no worker has in hand."""
    with _store(part) as store:
        return store.backlog().total("waiting")


def _lease(part: Part) -> float:
    with _store(part) as store:
        return store.lease


def _store(part: Part) -> closing[SQLiteStore]:
    return closing(open_store(peer_of(part.contestant).url_of(part.path), migrate=False))


def figures_of(name: str, seen: list[Again]) -> list[Figure]:
    """What the runs brought."""
    target = Target("≤", seen[0].lease + 2.0)
    return [
        Figure(f"{name}: jobs in hand when killed", tuple(float(one.held) for one in seen)),
        Figure("  first of them again after", tuple(one.first for one in seen), "s"),
        Figure("  all of them again after", tuple(one.last for one in seen), "s", target),
    ]
