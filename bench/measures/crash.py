"""kill -9 of a worker with jobs in hand: how long until they run again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext

import msgspec

from bench import peers
from bench.figures import Figure, Measured, Scale, Target
from bench.grounds import Ground, Place
from bench.jobs import notes
from bench.ours import PREFIX, ours, peer_of
from bench.processes import Child, say, wait_for
from bench.roles import Part, enqueue, start
from bench.running import Troubles
from treppe.app import open_store
from treppe.store.protocol import Store

TITLE = "kill -9 of a worker with a batch in hand: until all of it has run again"
WARM = 2000
JOBS = 100  # in less than a second: a worker of whose jobs none ends soon gives back what it has not begun
REST = 2.0
PATIENCE = 60.0
CAP = (90, 45)
LOOK = 0.1


class Again(msgspec.Struct):
    """Seconds from the kill until the first and the last of the *held* jobs ran again; and the store's lease."""

    held: int
    lease: float
    first: float
    last: float


def run(scale: Scale, ground: Ground) -> Measured:
    """Once with another worker there all the time, once with one that is started after the kill; then the peers."""
    measured, runs, troubles = Measured("crash", TITLE), scale.pick(scale.runs, 1), Troubles()
    for contestant in ours(ground.store):
        ways = {"another worker is there": True, "one is started then": False}
        for name, standby in list(ways.items())[1 if scale.quick and ground.store != "sqlite" else 0 :]:
            seen = []
            with troubles.noting(contestant):
                for turn in range(runs):
                    say(f"crash, run {turn + 1} of {runs}: {contestant}, {name}")
                    seen.append(one_run(ground, contestant, standby))
                measured.figures += figures_of(f"{peer_of(contestant).store}, {name}", seen)
    if ground.store != "sqlite":
        _add_peers(measured, scale, ground, troubles)
    measured.trouble = troubles.ours()
    return measured


def one_run(ground: Ground, contestant: str, standby: bool) -> Again:
    """The killed worker's jobs never come to an end; the other one's jobs of the same task end at once."""
    with ground.place(contestant) as place:
        first = place.part(WARM, job="hold", file="first")
        second = msgspec.structs.replace(first, job="note", file="second")
        enqueue("fill", first)
        with start("work", first) as killed:
            if not standby:
                return _kill(killed, first, second, starts_after=True)
            with start("work", second):
                time.sleep(_lease(second) + REST)  # a worker that has just started lets nothing lapse
                return _kill(killed, first, second)


def figures_of(name: str, seen: list[Again]) -> list[Figure]:
    """What the runs brought."""
    target = Target("≤", seen[0].lease + 2.0)
    return [
        Figure(f"{name}: jobs in hand when killed", tuple(float(one.held) for one in seen)),
        Figure("  first of them again after", tuple(one.first for one in seen), "s"),
        Figure("  all of them again after", tuple(one.last for one in seen), "s", target),
    ]


def _kill(killed: Child, first: Part, second: Part, starts_after: bool = False) -> Again:
    wait_for("the first jobs", lambda: _open(first) == 0 or None, PATIENCE)
    enqueue("put", msgspec.structs.replace(first, n=JOBS))
    held = wait_for("a batch in hand", lambda: _running(second) or None, PATIENCE)
    others, at = JOBS - held, time.monotonic()
    killed.kill()
    with start("work", second) if starts_after else nullcontext():
        told = wait_for("the jobs again", lambda: _all(_lasting(second)), PATIENCE)
    return Again(held, _lease(second), told[others][1] - at, told[-1][1] - at)


def _lasting(part: Part) -> list[tuple[float, float]]:
    """The starts of the jobs that the killed worker does not come to an end with."""
    return [note for note in notes(part.notes) if note[0] > 0]


def _all(told: list[tuple[float, float]]) -> list[tuple[float, float]] | None:
    return told if len({sent for sent, _ in told}) >= JOBS else None


def _open(part: Part) -> int:
    with _store(part) as store:
        return store.backlog().open


def _running(part: Part) -> int:
    """Jobs that a worker has in hand."""
    with _store(part) as store:
        return store.backlog().total("running")


def _lease(part: Part) -> float:
    with _store(part) as store:
        return store.lease


def _store(part: Part) -> closing[Store]:
    return closing(open_store(peer_of(part.contestant).url_of(part.place), migrate=False))


# The peers: one job in hand each, all at the same time, as they only wait


def _add_peers(measured: Measured, scale: Scale, ground: Ground, troubles: Troubles) -> None:
    everybody = peers.contestants(ground.store, scale.peers)
    queues = [name for name in everybody if not name.startswith(PREFIX) and not peers.variant_of(name).limit]
    cap = scale.pick(*CAP)
    say(f"crash: the peers, up to {cap} s")
    for contestant, after in peers_again(ground, queues, float(cap), troubles).items():
        who = peers.variant_of(contestant).title
        if after is None:
            measured.notes.append(f"{who}: not again within {cap} s, a new worker started at once, its defaults")
        else:
            name = f"{who}: its one job again, a new worker started at once"
            measured.figures.append(Figure(name, (after,), "s", chart="kill -9: again after", who=who))
    measured.notes += troubles.sentences()


def peers_again(ground: Ground, contestants: Sequence[str], cap: float, troubles: Troubles) -> dict[str, float | None]:
    """Seconds from the kill until the job ran again; None where it did not in time."""
    with ExitStack() as stack:
        killed: dict[str, tuple[Part, float]] = {}
        for contestant in contestants:
            with troubles.noting(contestant):
                killed[contestant] = stack.enter_context(_killed(stack.enter_context(ground.place(contestant))))
        give_up = time.monotonic() + cap
        while time.monotonic() < give_up and not all(notes(part.notes) for part, _ in killed.values()):
            time.sleep(LOOK)
        told = {name: (notes(part.notes), at) for name, (part, at) in killed.items()}
        return {name: starts[0][1] - at if starts else None for name, (starts, at) in told.items()}


@contextmanager
def _killed(place: Place) -> Iterator[tuple[Part, float]]:
    """A worker killed with a job in hand, another one started: where that one notes its starts, and when it was."""
    first = place.part(1, job="hold", file="first")
    second = msgspec.structs.replace(first, job="note", file="second")
    with start("work", first) as worker:
        enqueue("put", first)
        wait_for("the job in hand", lambda: notes(first.notes) or None, PATIENCE)
        time.sleep(1.0)
        worker.kill()
    at = time.monotonic()
    with start("work", second):
        yield second, at
