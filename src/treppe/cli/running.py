"""The commands that run: up, work, drain, and the demonstration."""

from __future__ import annotations

import logging

import click

from treppe.cli import output
from treppe.cli.house import House, house
from treppe.cli.kit import Command, as_json
from treppe.cli.logs import log_options, start_log
from treppe.config.parse import duration

log = logging.getLogger("treppe.cli")


@click.command(cls=Command)
@click.option("--no-worker", is_flag=True, help="Door and board only; work is done by `treppe work` or a drain.")
@log_options
@house
def up(house: House, no_worker: bool, log_level: str, log_json: bool) -> None:
    """Door, worker and board in one process. Ctrl-C ends it in good order."""
    from treppe import run

    start_log(log_level, log_json)
    _look_first(house)
    run.up(house.settings, house.app, with_worker=not no_worker)


@click.command(cls=Command)
@log_options
@house
def work(house: House, log_level: str, log_json: bool) -> None:
    """A worker process: carries out jobs until it is stopped. Start as many as you like."""
    from treppe import run

    start_log(log_level, log_json)
    _look_first(house)
    run.work(house.settings, house.app)


@click.command(cls=Command)
@click.option("--budget", default="50s", show_default=True, metavar="DURATION", help="End after this time.")
@log_options
@as_json
@house
def drain(house: House, budget: str, as_json: bool, log_level: str, log_json: bool) -> None:
    """Carry out what is due, then end: for cron and other schedulers. Overlapping calls are safe.

    Exit code 0 also when jobs failed; they are in `treppe status`.
    """
    from treppe import run

    seconds = duration(budget, "--budget", least=1.0, most=86400.0)
    start_log(log_level, log_json)
    _look_first(house)
    result = run.drain(house.settings, house.app, seconds)
    if as_json:
        output.document(result)
    else:
        output.fields([_readable(name, value) for name, value in result.items()])


@click.command(
    cls=Command,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: tuple[str, ...]) -> int:
    """The promotion Friday: a shop, four systems that fail, and nothing lost. --help tells more."""
    from treppe.demo import main

    return main(list(arguments))


def _readable(name: str, value: object) -> tuple[str, object]:
    """A figure for people: what ends in ``_s`` is seconds."""
    if name.endswith("_s") and isinstance(value, float):
        value = output.age(value)
    return name.removesuffix("_s").replace("_", " "), value


def _look_first(house: House) -> None:
    """Refuse settings with errors; tell the warnings."""
    from treppe.cli.preflight import refuse_errors

    for finding in refuse_errors(house.settings, house.path):
        log.warning("%s", finding)
