"""`python -m bench`: measure, print the report, keep it as JSON if asked to.

Exit codes: 0 all targets reached, 1 one was missed, 2 wrong usage, 3 something could not be measured.
"""

from __future__ import annotations

import difflib
import signal
import sys
import time
import traceback
from pathlib import Path

import click

from bench import report
from bench.about import about
from bench.figures import Measured, Scale
from bench.measures import NAMES, measure
from bench.processes import Stuck, fresh_folder


class Measures(click.ParamType[str]):
    """The name of a measure."""

    name = "measure"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name if there is such a measure; else the nearest one is named."""
        if value not in NAMES:
            near = difflib.get_close_matches(value, NAMES, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            self.fail(f"there is no measure {value!r}.{hint} There are: {', '.join(NAMES)}", param, ctx)
        return value


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes: under four minutes, for a first look.")
@click.option(
    "--only",
    multiple=True,
    type=Measures(),
    metavar="NAME",
    help=f"Only this one; may be repeated: {', '.join(NAMES)}.",
)
@click.option("--runs", type=click.IntRange(1, 99), default=3, show_default=True, help="Runs of each; medians count.")
@click.option(
    "--json", "keep", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Keep all runs in this file."
)
def main(quick: bool, only: tuple[str, ...], runs: int, keep: Path | None) -> None:
    """How fast and how small Treppe is, beside its peers, in one run."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is stopped, what was made removed
    began = time.monotonic()
    scale = Scale(runs, quick)
    with fresh_folder() as folder:
        machine = about(folder)
    print(report.heading(machine, scale), flush=True)
    all_measured = []
    for name in only or NAMES:
        all_measured.append(measured(name, scale))
        print(report.as_text(all_measured[-1]), flush=True)
        if keep:
            keep.write_bytes(report.as_json(machine, scale, all_measured))
    print(report.ending(all_measured, time.monotonic() - began))
    sys.exit(3 if any(one.trouble for one in all_measured) else 0 if all(one.reached for one in all_measured) else 1)


def measured(name: str, scale: Scale) -> Measured:
    """The measure, or why it could not be made; the others go on."""
    began = time.monotonic()
    try:
        made = measure(name).run(scale)
    except Exception as error:
        if not isinstance(error, Stuck):
            traceback.print_exc()
        made = Measured(name, measure(name).TITLE, trouble=str(error) or type(error).__name__)
    made.seconds = time.monotonic() - began
    return made


if __name__ == "__main__":
    main(prog_name="bench")
