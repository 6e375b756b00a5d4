"""A worker process with handlers that leave traces in files beside the store."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from tests.worker.support import FREE, Order, sync
from treppe.store.sqlite import SQLiteStore
from treppe.upkeep import Upkeep
from treppe.worker import Run, Worker


def main(order: Order) -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    folder = Path(order.file).parent
    store = SQLiteStore(order.file)
    store.lease = order.lease

    def note(run: Run) -> None:
        with (folder / "ran").open("a") as file:
            file.write(f"{run.claim.id}\n")

    def hang(run: Run) -> None:
        note(run)
        while not (folder / "go").exists():
            time.sleep(0.005)

    def leave(run: Run) -> None:
        note(run)
        os._exit(7)

    upkeep = Upkeep(store)
    handlers = {"task": sync(note), "hang": sync(hang), "exit": sync(leave)}
    worker = Worker(
        store, handlers, FREE, lease=order.lease, threads=order.threads, chores=upkeep.turn,
        on_trouble=upkeep.trouble,
    )  # fmt: skip
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    tally = worker.drain(order.budget) if order.act == "drain" else worker.run()
    sys.stdout.write(msgspec.json.encode(tally).decode() + "\n")
    store.close()


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Order))
