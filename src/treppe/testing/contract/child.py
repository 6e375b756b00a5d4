"""The other process of the contract, told by one line of JSON what to do.

It prints one line per thing that is certain, and only after the store has answered.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable

import msgspec

from treppe.store.protocol import Store
from treppe.testing.contract.base import Opener
from treppe.testing.contract.verbs import claim, finished, put


class Order(msgspec.Struct, frozen=True):
    """What a child shall do: ``act`` names a function of this module."""

    opener: Opener
    act: str
    name: str = "child"
    n: int = 1


def put_for_ever(store: Store, order: Order) -> None:
    """Put batches of *n*, and print the number of each after it was acknowledged; until killed."""
    batch = 0
    while True:
        put(store, *[f"{order.name}-{batch}-{i}" for i in range(order.n)], payload=b"x" * 100)
        say(str(batch))
        batch += 1


def work_until_empty(store: Store, order: Order) -> None:
    """Claim *n* at a time and finish; print each id after its settle was acknowledged."""
    worker = os.getpid()
    store.enlist(worker, order.name, 3600)
    while claims := claim(store, order.n, worker=worker).claims:
        refused = store.settle([finished(one) for one in claims])
        for one in claims:
            say(("refused " if refused else "done ") + one.id)


def claim_and_hang(store: Store, order: Order) -> None:
    """Claim *n* jobs, say so, and never come back."""
    store.enlist(os.getpid(), order.name, 10)
    for one in claim(store, order.n, worker=os.getpid()).claims:
        say(one.id)
    sys.stdin.read()


def say(line: str) -> None:
    """Tell the parent."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


ACTS: dict[str, Callable[[Store, Order], None]] = {
    act.__name__: act for act in (put_for_ever, work_until_empty, claim_and_hang)
}


def main() -> None:
    """Read the order, open the store, act."""
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    module, name = order.opener.target.split(":")
    store: Store = getattr(importlib.import_module(module), name)(*order.opener.arguments)
    try:
        ACTS[order.act](store, order)
    finally:
        store.close()
