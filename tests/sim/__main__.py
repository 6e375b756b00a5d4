"""``python3 dev.py sim``: worlds in virtual time, until so many operations were made or a promise is broken.

--operations N   end after so many (default 200,000)
--minutes M      … or after so many minutes, whatever comes first
--seed N         begin with this world (default 1); with --operations 1 it is the only one
--store KIND     sqlite (default) or postgres
--processes N    worlds at a time (default: one for each core)
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import closing

from tests.sim.places import KINDS
from tests.sim.runner import Sum, command, one_by_one, place_here, run_until, side_by_side


def main(arguments: list[str]) -> int:
    """0 when every promise was kept, 1 when one was broken."""
    parser = argparse.ArgumentParser(
        prog="dev.py sim", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=None)
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=sorted(KINDS), default="sqlite")
    parser.add_argument("--processes", type=int, default=None)
    asked = parser.parse_args(arguments)
    operations = asked.operations or (10**12 if asked.minutes else 200_000)
    processes = asked.processes or (1 if operations < 1000 else os.cpu_count() or 1)
    if processes == 1:
        worlds = one_by_one(asked.seed, place_here(asked.store))
    else:
        worlds = side_by_side(asked.seed, asked.store, processes)
    with closing(worlds):
        return _tell(run_until(operations, worlds, _Progress(asked.minutes)), asked.store)


class _Progress:
    """A line every ten seconds; ends the run when the minutes are over."""

    def __init__(self, minutes: float | None) -> None:
        self._until = time.monotonic() + 60.0 * minutes if minutes else float("inf")
        self._next = time.monotonic() + 10.0

    def __call__(self, total: Sum) -> bool:
        if time.monotonic() >= self._next:
            self._next += 10.0
            sys.stderr.write(f"  {total.operations:,} operations in {total.seconds:.0f} s\n")
        return time.monotonic() >= self._until


def _tell(total: Sum, store: str) -> int:
    pace = total.operations / max(total.seconds, 1e-9)
    done = f"{total.worlds:,} worlds, {total.jobs:,} jobs, {total.operations:,} operations"
    faults = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in sorted(total.faults.items()))
    _say(f"{done} in {total.seconds:.0f} s ({pace:,.0f}/s)")
    _say(f"{total.crashes:,} crashes; faults by kind: {faults or 'none'}")
    if total.failed is None:
        _say("no promise was broken")
        return 0
    for one in total.failed.broken[:10]:
        _say(f"seed {total.failed.seed}: {one}")
    _say(f"repeat it with: {command(total.failed.seed, store)}")
    return 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts have one order, then
        os.execve(
            sys.executable, [sys.executable, "-m", "tests.sim", *sys.argv[1:]], os.environ | {"PYTHONHASHSEED": "0"}
        )
    sys.exit(main(sys.argv[1:]))
