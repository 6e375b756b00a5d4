"""`python -m bench`: measure, print the report, keep it as JSON and as a picture if asked to.

Exit codes: 0 all targets reached, 1 one was missed, 2 wrong usage, 3 something could not be measured.
"""

from __future__ import annotations

import difflib
import signal
import sys
import time
import traceback
from itertools import chain
from pathlib import Path

import click

from bench import peers, plot, report
from bench.about import about
from bench.figures import Measured, Scale
from bench.grounds import Ground, ground
from bench.measures import NAMES, measure
from bench.processes import Stuck, fresh_folder

QUICK_RUNS = {"sqlite": 3, "postgres": 1}
RUNS = 3
FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


def known(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names if there are such measures or peers; else the nearest one is named."""
    there = _measures() if parameter.name == "only" else _peers()
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, there, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            what = "measure" if parameter.name == "only" else "peer"
            raise click.BadParameter(f"there is no {what} {name!r}.{hint} There are: {', '.join(there)}")
    return names


def _measures() -> list[str]:
    return list(dict.fromkeys(chain(*NAMES.values())))


def _peers() -> list[str]:
    return list(chain(*(peers.names(store) for store in NAMES)))


@click.command()
@click.option("--store", type=click.Choice(list(NAMES)), default="sqlite", show_default=True, help="Where jobs lie.")
@click.option("--quick", is_flag=True, help="Small sizes, for a first look: four minutes, on PostgreSQL ten.")
@click.option("--only", multiple=True, callback=known, metavar="NAME", help=f"Only this: {', '.join(_measures())}.")
@click.option("--peer", multiple=True, callback=known, metavar="NAME", help="Beside Treppe only this peer.")
@click.option("--runs", type=click.IntRange(1, 99), help="Runs of each; medians count.  [3; quick on PostgreSQL: 1]")
@click.option("--json", "keep", type=FILE, help="Keep all runs in this file.")
@click.option("--plot", "draw", type=FILE, help="Draw the medians into this SVG file.")
def main(
    store: str,
    quick: bool,
    only: tuple[str, ...],
    peer: tuple[str, ...],
    runs: int | None,
    keep: Path | None,
    draw: Path | None,
) -> None:
    """How fast and how small Treppe is, beside its peers, in one run. `--only` and `--peer` may be repeated."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is stopped, what was made removed
    if wrong := [name for name in only if name not in NAMES[store]]:
        raise click.UsageError(f"{wrong[0]} is not measured on {store}")
    began = time.monotonic()
    scale = Scale(runs or (QUICK_RUNS[store] if quick else RUNS), quick, peer)
    try:
        with ground(store) as lying:
            all_measured = _measure_all(lying, scale, only or NAMES[store], keep, draw)
    except Stuck as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(3)
    print(report.ending(all_measured, time.monotonic() - began))
    sys.exit(3 if any(one.trouble for one in all_measured) else 0 if all(one.reached for one in all_measured) else 1)


def _measure_all(
    lying: Ground, scale: Scale, names: tuple[str, ...], keep: Path | None, draw: Path | None
) -> list[Measured]:
    """One after the other; what is there so far is kept after each."""
    with fresh_folder() as folder:
        machine = about(folder, lying)
    heading = report.heading(machine, scale)
    print(heading, flush=True)
    all_measured: list[Measured] = []
    for name in names:
        all_measured.append(measured(name, scale, lying))
        print(report.as_text(all_measured[-1]), flush=True)
        if keep:
            keep.write_bytes(report.as_json(machine, scale, all_measured))
        if draw:
            draw.write_text(plot.as_svg(all_measured, heading.partition(";")[0]), "utf-8")
    return all_measured


def measured(name: str, scale: Scale, lying: Ground) -> Measured:
    """The measure, or why it could not be made; the others go on."""
    began = time.monotonic()
    try:
        made = measure(name).run(scale, lying)
    except Exception as error:
        if not isinstance(error, Stuck):
            traceback.print_exc()
        made = Measured(name, measure(name).TITLE, trouble=str(error) or type(error).__name__)
    made.seconds = time.monotonic() - began
    return made


if __name__ == "__main__":
    main(prog_name="bench")
