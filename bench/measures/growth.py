"""Whether a claim, a settle, and the pace of a worker suffer when a million jobs wait."""

from __future__ import annotations

import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median

import msgspec

from bench import peers
from bench.figures import Figure, Measured, Scale, Target, rotated
from bench.grounds import Ground, Place
from bench.ours import once, ours, peer_of
from bench.processes import Stuck, module, say
from bench.roles import enqueue
from bench.running import Troubles, carry_out_some, jobs_of
from treppe.app import open_store
from treppe.job import Claim, Event, Kind, NewJob, Settlement
from treppe.policy.pace import Pacer
from treppe.store.protocol import Store, Wanted

TITLE = "Growth: time of a claim of 100 jobs, and of settling them"
TARGET = Target("≤", 1.3)
FEW = 10_000
TURNS = 200
BATCH = 100
PUT = 10_000
TASK = "bench"
DAY = 86400.0
TAKEN = 9000
BUILD_LIMIT, CLAIM_LIMIT, CLEAR_LIMIT = 900.0, 600.0, 120.0


class Held(msgspec.Struct, frozen=True):
    """What lies in a store: jobs that wait, jobs scheduled for tomorrow, and due jobs of one order key."""

    waiting: int
    scheduled: int = 0
    keyed: int = 0

    def __str__(self) -> str:
        """As people say it."""
        more = [f"{self.scheduled:,} scheduled"] if self.scheduled else []
        more += [f"{self.keyed:,} of one order key"] if self.keyed else []
        return ", ".join([f"{self.waiting:,} waiting", *more])


class Building(msgspec.Struct):
    """What the process that builds is told."""

    url: str
    held: Held


class Claiming(msgspec.Struct):
    """What the process that claims is told: the stores' URLs by name, and how often to claim from each."""

    urls: dict[str, str]
    turns: int


class Times(msgspec.Struct):
    """Medians in milliseconds; ``clear`` is how many seconds of claiming went by until a claim brought a full batch."""

    claim: float
    settle: float
    clear: float = 0.0


def run(scale: Scale, ground: Ground) -> Measured:
    """The stores are built once; each run then claims from them in turn, in one fresh process."""
    many = scale.pick(1_000_000, 100_000)
    held = [Held(FEW), Held(many), Held(FEW, many)]
    if ground.store != "sqlite":
        held.append(Held(FEW, keyed=scale.pick(200_000, 20_000)))
    measured, troubles = Measured("growth", f"{TITLE} (medians of {TURNS})"), Troubles()
    for contestant in ours(ground.store):
        with troubles.noting(contestant), built(ground, contestant, held) as urls:
            seen = []
            for turn in range(scale.runs):
                say(f"growth, run {turn + 1} of {scale.runs}: {contestant}")
                seen.append(one_run(Claiming(urls, TURNS)))
            measured.figures += figures_of(peer_of(contestant).store, seen)
    if scale.quick:
        measured.notes.append("how the pace of workers grows, the peers' too, is not looked at in a quick run")
    elif ground.store != "sqlite":
        _add_peers(measured, scale, ground, many, troubles)
    measured.trouble = troubles.ours()
    return measured


def figures_of(store: str, seen: list[dict[str, Times]]) -> list[Figure]:
    """The times, and how much longer they are than with few jobs."""
    figures: list[Figure] = []
    for deed in ("claim", "settle"):
        times = {name: tuple(getattr(one[name], deed) for one in seen) for name in seen[0]}
        few, *others = times
        figures.append(Figure(f"{store}: {deed} at {few}", times[few], "ms"))
        for name in others:
            ratios = tuple(b / a for a, b in zip(times[few], times[name], strict=True))
            figures.append(Figure(f"{store}: {deed} at {name}", times[name], "ms"))
            figures.append(Figure(f"  ÷ at {few}", ratios, "×", TARGET))
    figures += [
        Figure(f"{store}: until a claim is full, {name}", tuple(one[name].clear for one in seen), "s")
        for name in seen[0]
        if "order key" in name
    ]
    return figures


def one_run(claiming: Claiming) -> dict[str, Times]:
    """Claim in turn from all of them."""
    return msgspec.json.decode(_child("claim", claiming, CLAIM_LIMIT), type=dict[str, Times])


@contextmanager
def built(ground: Ground, contestant: str, held: list[Held]) -> Iterator[dict[str, str]]:
    """The URLs of the stores to claim from, by what people call them; the first has few jobs."""
    with ExitStack() as stack:
        urls = {}
        for one in held:
            say(f"growth: building {one}")
            place = stack.enter_context(ground.place(contestant))
            urls[str(one)] = peer_of(contestant).url_of(place.where)
            _child("build", Building(urls[str(one)], one), BUILD_LIMIT)
            ground.settle_down(place)
        yield urls


def _child(role: str, told: object, seconds: float) -> bytes:
    with module("bench.measures.growth", role, msgspec.json.encode(told).decode()) as child:
        return child.answer(seconds)


# The peers, and Treppe as a whole: jobs a second


def _add_peers(measured: Measured, scale: Scale, ground: Ground, many: int, troubles: Troubles) -> None:
    for contestant in troubles.without(once(peers.contestants(ground.store, scale.peers))):
        with troubles.noting(contestant):
            measured.figures += _pace_figures(contestant, *_paces(ground, contestant, scale, many))
    measured.notes += troubles.sentences()


def _paces(ground: Ground, contestant: str, scale: Scale, many: int) -> tuple[list[Held], dict[Held, list[float]]]:
    """Jobs a second among few, and among many, run by run; each run begins with a copy of what was built once."""
    grown = min(many, peers.variant_of(contestant).grows_to)
    held = [Held(FEW), Held(grown), Held(FEW, grown)]
    paces: dict[Held, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        places = {one: stack.enter_context(_filled(ground, contestant, one)) for one in held}
        for turn in range(scale.runs):
            say(f"growth, run {turn + 1} of {scale.runs}: {contestant}")
            for one in held[turn % 3 :] + held[: turn % 3]:
                with ground.place(contestant, like=places[one].where) as copy:
                    paces[one].append(carry_out_some(copy, min(TAKEN, jobs_of(contestant, TAKEN * 4, scale) // 4)))
    return held, paces


@contextmanager
def _filled(ground: Ground, contestant: str, held: Held) -> Iterator[Place]:
    with ground.place(contestant) as place:
        say(f"growth: {contestant}, {held}")
        enqueue("fill", place.part(held.waiting), BUILD_LIMIT)
        if held.scheduled:
            enqueue("fill", place.part(held.scheduled, delay=DAY), BUILD_LIMIT)
        ground.settle_down(place)
        yield place


def _pace_figures(contestant: str, held: list[Held], paces: dict[Held, list[float]]) -> list[Figure]:
    who, few = peers.variant_of(contestant).title, held[0]
    figures = [Figure(f"{who}: among {few}", tuple(paces[few]), "/s")]
    for one in held[1:]:
        ratios = tuple(b / a for a, b in zip(paces[few], paces[one], strict=True))
        chart = f"growth: pace among {'a million scheduled' if one.scheduled else 'a million waiting'} ÷ among few"
        figures.append(Figure(f"  among {one}: ÷ that", ratios, "×", chart=chart, who=who))
    return figures


# In a process of their own


def build(told: str) -> None:
    """Put the jobs, in bulk."""
    part = msgspec.json.decode(told, type=Building)
    store = open_store(part.url)
    kinds = ((part.held.keyed, 0.0, "one"), (part.held.waiting, 0.0, None), (part.held.scheduled, DAY, None))
    for total, delay, key in kinds:
        for begin in range(0, total, PUT):
            _put(store, min(PUT, total - begin), delay, key)
    store.close()


def claim(told: str) -> None:
    """Claim and settle in each store in turn, and put as many again, so that the number that waits stays."""
    claiming = msgspec.json.decode(told, type=Claiming)
    stores = {name: open_store(url) for name, url in claiming.urls.items()}
    worker = secrets.randbits(62)
    for store in stores.values():
        store.enlist(worker, "bench", 3600.0)
    clear = {name: _until_full(store, worker) for name, store in stores.items()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in stores}
    for turn in range(claiming.turns):
        for name in rotated(list(stores), turn):
            times[name].append(_claim_and_settle(stores[name], worker))
            _put(stores[name], BATCH, 0.0)
    for store in stores.values():
        store.retire(worker)
        store.close()
    middle = {name: Times(*(median(ms) for ms in zip(*told, strict=True)), clear[name]) for name, told in times.items()}
    sys.stdout.write(msgspec.json.encode(middle).decode())


def _until_full(store: Store, worker: int) -> float:
    """Seconds of claiming and settling until a claim is full: jobs of one key are set aside a piece at a time."""
    began = time.perf_counter()
    while len(claims := store.claim(Wanted(worker, BATCH, BATCH, frozenset({TASK})), Pacer({})).claims) < BATCH - 1:
        store.settle([_finished(claim) for claim in claims])
        if time.perf_counter() - began > CLEAR_LIMIT:
            raise Stuck(f"after {CLEAR_LIMIT:g} s of claiming a claim still brought {len(claims)} of {BATCH} jobs")
    took = time.perf_counter() - began
    store.settle([_finished(claim) for claim in claims])
    return took


def _claim_and_settle(store: Store, worker: int) -> tuple[float, float]:
    """Milliseconds of the two."""
    began = time.perf_counter()
    claimed = store.claim(Wanted(worker, BATCH, BATCH, frozenset({TASK})), Pacer({}))
    between = time.perf_counter()
    refused = store.settle([_finished(claim) for claim in claimed.claims])
    ended = time.perf_counter()
    if len(claimed.claims) < BATCH - 1 or refused:
        raise Stuck(f"{len(claimed.claims)} of {BATCH} jobs came, {len(refused)} settles were refused")
    return (between - began) * 1000, (ended - between) * 1000


def _finished(claim: Claim) -> Settlement:
    return Settlement(claim, Event.FINISH, Kind.OK)


def _put(store: Store, n: int, delay: float, key: str | None = None) -> None:
    base = f"{time.time_ns()}:{delay:g}:{key}"
    store.put([NewJob(f"{base}:{i}", TASK, "bench", b'{"sent":0.0}', key=key, delay=delay) for i in range(n)])


if __name__ == "__main__":
    {"build": build, "claim": claim}[sys.argv[1]](sys.argv[2])
