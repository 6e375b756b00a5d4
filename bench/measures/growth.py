"""Whether a claim, and a settle, take longer when a million jobs wait."""

from __future__ import annotations

import secrets
import sys
import time
from pathlib import Path
from statistics import median

import msgspec

from bench.figures import Figure, Measured, Scale, Target, rotated
from bench.ours import peer_of, stores
from bench.processes import Child, Stuck, fresh_folder, say
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
BUILD_LIMIT, CLAIM_LIMIT = 900.0, 300.0


class Part(msgspec.Struct):
    """What a child process is told: where the store lies, and how many jobs wait or are scheduled."""

    url: str
    waiting: int = 0
    scheduled: int = 0


class Claiming(msgspec.Struct):
    """What the process that claims is told: the stores' URLs by name, and how often to claim from each."""

    urls: dict[str, str]
    turns: int


class Times(msgspec.Struct):
    """Medians in milliseconds."""

    claim: float
    settle: float


def run(scale: Scale) -> Measured:
    """Three stores are built once; each run then claims from them in turn, in one fresh process."""
    many = scale.pick(1_000_000, 100_000)
    measured = Measured("growth", f"{TITLE} (medians of {TURNS})")
    for contestant in stores():
        with fresh_folder() as folder:
            claiming = Claiming(build_all(contestant, folder, FEW, many), TURNS)
            seen = []
            for turn in range(scale.runs):
                say(f"growth, run {turn + 1} of {scale.runs}: {contestant}")
                seen.append(one_run(claiming))
        measured.figures += figures_of(peer_of(contestant).store, seen)
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
    return figures


def one_run(claiming: Claiming) -> dict[str, Times]:
    """Claim in turn from all of them."""
    return msgspec.json.decode(_child("claim", claiming, CLAIM_LIMIT), type=dict[str, Times])


def build_all(contestant: str, folder: Path, few: int, many: int) -> dict[str, str]:
    """The URLs of the stores to claim from, by what people call them; the first has few jobs."""
    parts = {
        f"{few:,} waiting": Part(_url(contestant, folder / "few"), few),
        f"{many:,} waiting": Part(_url(contestant, folder / "many"), many),
        f"{few:,} waiting, {many:,} scheduled": Part(_url(contestant, folder / "later"), few, many),
    }
    for name, part in parts.items():
        say(f"growth: building {name}")
        _child("build", part, BUILD_LIMIT)
    return {name: part.url for name, part in parts.items()}


def _url(contestant: str, folder: Path) -> str:
    folder.mkdir()
    return peer_of(contestant).url_of(folder)


def _child(role: str, part: object, seconds: float) -> bytes:
    with Child("bench.measures.growth", role, msgspec.json.encode(part).decode()) as child:
        return child.answer(seconds)


# In a process of their own


def build(told: str) -> None:
    """Put the jobs, in bulk."""
    part = msgspec.json.decode(told, type=Part)
    store = open_store(part.url)
    for total, delay in ((part.waiting, 0.0), (part.scheduled, 86400.0)):
        for start in range(0, total, PUT):
            _put(store, min(PUT, total - start), delay)
    store.close()


def claim(told: str) -> None:
    """Claim and settle in each store in turn, and put as many again, so that the number that waits stays."""
    claiming = msgspec.json.decode(told, type=Claiming)
    stores = {name: open_store(url) for name, url in claiming.urls.items()}
    worker = secrets.randbits(62)
    for store in stores.values():
        store.enlist(worker, "bench", 3600.0)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in stores}
    for turn in range(claiming.turns):
        for name in rotated(list(stores), turn):
            times[name].append(_claim_and_settle(stores[name], worker))
            _put(stores[name], BATCH, 0.0)
    for store in stores.values():
        store.retire(worker)
        store.close()
    middle = {name: Times(*(median(ms) for ms in zip(*told, strict=True))) for name, told in times.items()}
    sys.stdout.write(msgspec.json.encode(middle).decode())


def _claim_and_settle(store: Store, worker: int) -> tuple[float, float]:
    """Milliseconds of the two."""
    began = time.perf_counter()
    claimed = store.claim(Wanted(worker, BATCH, BATCH, frozenset({TASK})), Pacer({}))
    between = time.perf_counter()
    refused = store.settle([_finished(claim) for claim in claimed.claims])
    ended = time.perf_counter()
    if len(claimed.claims) != BATCH or refused:
        raise Stuck(f"{len(claimed.claims)} of {BATCH} jobs came, {len(refused)} settles were refused")
    return (between - began) * 1000, (ended - between) * 1000


def _finished(claim: Claim) -> Settlement:
    return Settlement(claim, Event.FINISH, Kind.OK)


def _put(store: Store, n: int, delay: float) -> None:
    base = f"{time.time_ns()}:{delay:g}"
    store.put([NewJob(f"{base}:{i}", TASK, "bench", b'{"sent":0.0}', delay=delay) for i in range(n)])


if __name__ == "__main__":
    {"build": build, "claim": claim}[sys.argv[1]](sys.argv[2])
