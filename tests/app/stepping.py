"""A process that works off one job of two steps and is killed inside the second, or comes to its end.

Called as ``python -m tests.app.stepping FILE MODE``; each step leaves a line in a file beside the store.
"""

import os
import sys
import time
from pathlib import Path

from treppe import Context, Treppe
from treppe.app import open_store
from treppe.policy.pace import Pacer
from treppe.upkeep import Upkeep
from treppe.worker import Worker


def app_of(file: Path, mode: str = "") -> Treppe:
    app = Treppe(open_store(f"sqlite:///{file}", durable=False))
    trace = file.parent / "trace"

    def leave(line: str) -> str:
        with trace.open("a") as out:
            out.write(f"{line}\n")
        return f"the result of {line}"

    def invoice() -> str:
        leave("invoice")
        if mode == "hang":
            time.sleep(60)
        if mode == "exit":
            os._exit(9)
        return "number 7"

    @app.task(name="order", queue="orders")
    def order(ctx: Context) -> list[str]:
        return [
            ctx.step("crm", leave, "crm"),
            ctx.step("invoice", invoice, repeat="ask"),
            ctx.step("end", leave, "end"),
        ]

    return app


def work(app: Treppe, lease: float = 0.3, seconds: float = 10.0) -> None:
    app.store.lease = lease
    upkeep = Upkeep(app.store)
    Worker(app.store, app.handlers(), Pacer({}), lease=lease, chores=upkeep.turn).drain(seconds)
    app.close()


if __name__ == "__main__":
    work(app_of(Path(sys.argv[1]), sys.argv[2]))
