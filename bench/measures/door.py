"""Durable answers a second at the door, beside what an empty endpoint answers on the same server."""

from __future__ import annotations

from collections import defaultdict
from importlib.util import find_spec
from statistics import median

import msgspec

from bench.door import BODY, FANS, Load, port_in
from bench.figures import Figure, Measured, Scale, Target, rotated
from bench.grounds import Ground
from bench.ours import ours, peer_of
from bench.processes import Stuck, module, needs_proc, say
from treppe.app import open_store

TITLE = "Door: webhooks answered once they are on disk"
KINDS = ["empty", *FANS]
CONNECTIONS = 32
SECONDS_LIMIT = 120.0
SHARES, TARGET_P99 = {"sqlite": Target("≥", 0.5), "postgres": Target("≥", 0.8)}, Target("<", 50.0)


class Seen(msgspec.Struct):
    """One run against one kind of server: what the load generator saw, and the server's share of a core."""

    load: Load
    server: float

    @property
    def server_us(self) -> float:
        """Processor time of the server for one answer, in µs."""
        return self.server / self.load.per_s * 1e6


def run(scale: Scale, ground: Ground) -> Measured:
    """Each kind of server in turn."""
    needs_proc()
    seconds = scale.pick(50, 15) / 10
    seen: dict[str, list[Seen]] = defaultdict(list)
    for turn in range(scale.runs):
        for kind in rotated(KINDS, turn):
            say(f"door, run {turn + 1} of {scale.runs}: {kind}")
            seen[kind].append(one_run(ground, kind, seconds))
    title = f"{TITLE}: {ground.title} ({CONNECTIONS} connections, {BODY} bytes, HMAC, durable, one process)"
    return Measured("door", title, figures_of(seen, SHARES[ground.store]), [_headroom(seen), _loop()])


def one_run(ground: Ground, kind: str, seconds: float) -> Seen:
    """A fresh server and a fresh load generator; every answer must be in the store afterwards."""
    contestant = ours(ground.store)[0]
    with ground.place(contestant) as place:
        url = peer_of(contestant).url_of(place.where)
        with module("bench.door", "serve", kind, url) as server:
            port = port_in(server.line())
            if not port:
                raise Stuck(f"the server ({kind}) did not start")
            with module("bench.door", "load", port, str(seconds), str(CONNECTIONS)) as client:
                before = server.cpu()
                load = msgspec.json.decode(client.answer(SECONDS_LIMIT), type=Load)
                busy = server.cpu() - before
        if kind != "empty":
            _must_hold(url, load.answered * len(FANS[kind]))
    return Seen(load, busy / load.answered * load.per_s)


def figures_of(seen: dict[str, list[Seen]], target: Target) -> list[Figure]:
    """The shares of the empty endpoint, run by run, and what they are made of."""
    loads = {kind: [one.load for one in runs] for kind, runs in seen.items()}
    names = {"empty": "empty endpoint", "door": "door, one destination", "fan_out": "door, fan-out to 4"}
    figures = []
    for kind, runs in seen.items():
        name = names[kind]
        figures.append(Figure(f"{name}: answers", tuple(one.load.per_s for one in runs), "/s"))
        figures.append(Figure("  server's CPU for one answer", tuple(one.server_us for one in runs), "µs"))
        figures.append(Figure("  p50", tuple(one.load.p50_ms for one in runs), "ms"))
        figures.append(
            Figure("  p99", tuple(one.load.p99_ms for one in runs), "ms", TARGET_P99 if kind == "door" else None)
        )
    for kind in FANS:
        shares = tuple(a.per_s / b.per_s for a, b in zip(loads[kind], loads["empty"], strict=True))
        figures.append(Figure(f"{names[kind]} ÷ empty endpoint", shares, "×", target if kind == "door" else None))
    return figures


def _headroom(seen: dict[str, list[Seen]]) -> str:
    """The load generator must not be what limits: for one answer it has to take less time than the fastest server."""
    ours = median(one.load.cpu / one.load.per_s * 1e6 for one in seen["empty"])
    server = median(one.server_us for one in seen["empty"])
    verdict = "the load generator is the faster one" if ours < server else "IT MAY BE WHAT LIMITS"
    return (
        f"the load generator takes {ours:.0f} µs of a core for one answer, the empty server {server:.0f} µs: {verdict}"
    )


def _loop() -> str:
    return f"both servers: uvicorn on {'uvloop' if find_spec('uvloop') else 'asyncio'}"


def _must_hold(url: str, jobs: int) -> None:
    store = open_store(url, migrate=False)
    held = store.backlog().accepted
    store.close()
    if held < jobs:
        raise Stuck(f"only {held} of {jobs} jobs are in the store although the door answered for all of them")
