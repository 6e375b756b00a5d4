"""``treppe demo``: the promotion Friday, over real HTTP on loopback, with real processes.

A shop posts a burst of orders; each must reach CRM, accounting, stock and mail, which throttle, fail, hang and lie.
A worker is killed in the middle. In the end the ledgers of the four are compared with what was promised.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import click
import msgspec

from treppe.demo import unqueued
from treppe.demo.friday import Friday, friday
from treppe.demo.ground import POSTGRES, SQLITE, YOURS, open_ground
from treppe.demo.processes import Children, Failed
from treppe.demo.reconcile import Evidence, Result, reconcile
from treppe.demo.report import scenario, table
from treppe.demo.screen import Screen
from treppe.demo.settings import environment
from treppe.demo.stage import Stage, a_day

BROKEN = 1
"""Exit code when a promise was broken, or the run could not be brought to its end."""


def main(argv: list[str]) -> int:
    """Run ``treppe demo`` with these arguments; returns 0, 1 (a promise broken), 2 (usage), 130 or 143 (stopped)."""
    try:
        return int(_command.main(argv, prog_name="treppe demo", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _stopped(130)
    except asyncio.CancelledError:
        return _stopped(143)


@click.command()
@click.option("--orders", type=click.IntRange(20, 200_000), default=1000, show_default=True, help="How many to post.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, another Friday.")
@click.option("--naive", is_flag=True, help="Without a queue: see what is lost and doubled.")
@click.option("--json", "as_json", is_flag=True, help="The reconciliation as one JSON object on the last line.")
@click.option("--keep", is_flag=True, help="Keep the folder with ledgers, logs, settings and store.")
@click.option(
    "--store",
    default=SQLITE,
    show_default=True,
    metavar="sqlite|postgres|URL",
    callback=lambda context, option, value: _known_store(value),
    help="On what: a file, a PostgreSQL server of the demo's own, or yours (postgresql://…, an empty database).",
)
@click.option("--restart-store", is_flag=True, help="Restart the store in the middle (with --store postgres).")
def _command(orders: int, seed: int, naive: bool, as_json: bool, keep: bool, store: str, restart_store: bool) -> int:
    """The promotion Friday: everything at once, and nothing lost.

    Exit code 0: every promise kept (with --naive: the run was carried out). 1: a promise was broken.
    """
    if restart_store and store != POSTGRES:
        raise click.UsageError("only a server of the demo's own can be restarted. Add --store postgres")
    day, screen = friday(orders, seed), Screen()
    folder = Path(tempfile.mkdtemp(prefix="treppe-friday-"))
    try:
        screen.print(scenario(day, naive))
        play = naively if naive else queued_on(store, folder, keep, restart_store)
        result = asyncio.run(_run_until_told_to_stop(day, folder, screen, play))
    except Failed as failed:
        cure = "" if keep else "\nWith --keep its folder stays: logs, ledgers, settings and store."
        raise click.ClickException(f"the Friday could not be brought to its end: {failed}{cure}") from failed
    finally:
        _leave(folder, keep, screen)
    screen.print(table(result, screen.paint))
    if as_json:
        screen.print(msgspec.json.encode(result.figures).decode())
    return BROKEN if result.figures.promises_broken and not naive else 0


Play = Callable[[Stage], Awaitable[Evidence]]
"""Plays the day on a stage."""


async def run(day: Friday, folder: Path, screen: Screen, play: Play) -> Result:
    """One whole Friday in this folder. Raises :class:`~treppe.demo.processes.Failed`; ends every process it started."""
    told = a_day(day, folder)
    async with Children(folder, environment(told)) as children:
        stage = Stage(told, children, screen)
        await stage.open()
        try:
            async with asyncio.timeout(day.longest):
                return reconcile(await play(stage))
        except TimeoutError:
            raise Failed(f"it took longer than {day.longest:.0f} s. {stage.where_it_stands()}") from None


async def naively(stage: Stage) -> Evidence:
    """Without a queue."""
    return await unqueued.play(stage)


def queued_on(store: str, folder: Path, keep: bool = False, restart_store: bool = False) -> Play:
    """With Treppe, on the store that is named: ``sqlite``, ``postgres`` or a URL."""
    from treppe.demo import queued

    async def play(stage: Stage) -> Evidence:
        with open_ground(store, folder, keep) as its_ground:
            return await queued.play(stage, its_ground, restart_store)

    return play


def _known_store(value: str) -> str:
    if value not in (SQLITE, POSTGRES) and not value.startswith(YOURS):
        raise click.BadParameter(f"{value!r} is not known. Write sqlite, postgres, or a URL: postgresql://…")
    return value


async def _run_until_told_to_stop(day: Friday, folder: Path, screen: Screen, play: Play) -> Result:
    running = asyncio.current_task()
    if running:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    return await run(day, folder, screen, play)


def _stopped(code: int) -> int:
    click.echo(
        "Stopped: every process of the Friday has ended, and its folder is gone unless --keep was given.", err=True
    )
    return code


def _leave(folder: Path, keep: bool, screen: Screen) -> None:
    if keep:
        screen.print(f"Kept: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
