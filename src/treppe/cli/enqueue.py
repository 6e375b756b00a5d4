"""``treppe enqueue``: one job by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from treppe.cli import output
from treppe.cli.house import House, house
from treppe.cli.kit import Command, Failed
from treppe.config.parse import duration
from treppe.config.words import did_you_mean

if TYPE_CHECKING:
    from treppe.config import Destination
    from treppe.job import NewJob, Placed


@click.command(cls=Command)
@click.argument("task")
@click.option("--arg", "pairs", multiple=True, metavar="NAME=JSON", help="One argument; repeat for more.")
@click.option("--json-args", metavar="JSON", help="All arguments as one JSON object.")
@click.option("--id", "id", help="The id of your choice; a second job of this id is not made.")
@click.option("--queue", help="Another queue than the task's own.")
@click.option("--key", help="The order key: jobs of one key run one after the other.")
@click.option("--delay", metavar="DURATION", help='Not before, e.g. "15m".')
@click.option("--priority", type=click.IntRange(-100, 100), help="Higher first, within its queue.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@house
def enqueue(
    house: House, /, task: str, pairs: tuple[str, ...], json_args: str | None, as_json: bool, **call: Any
) -> None:
    """Enqueue one job for a task of the app, or for a destination (destination:NAME).

    \b
    treppe enqueue shop.send_mail --arg 'to="ada@example.org"' --arg order=42
    treppe enqueue destination:crm --json-args '{"customer": 7}' --key 7
    """
    arguments = _arguments(pairs, json_args)
    call["delay"] = duration(call["delay"], "--delay") if call["delay"] else 0.0
    with house.store(make=True) as store:
        from treppe.app.premises import refuse_another_store
        from treppe.intake import Intake, raise_conflicts

        job = _job(house, task, arguments, call)
        if house.app and task in house.app.tasks:
            refuse_another_store(house.app, house.settings)
        placed = raise_conflicts(Intake(store).put([job])).jobs[0]
    _tell(placed, as_json)


def _arguments(pairs: tuple[str, ...], json_args: str | None) -> dict[str, Any]:
    found = _decoded("--json-args", json_args) if json_args is not None else {}
    if not isinstance(found, dict):
        raise click.UsageError("--json-args is a JSON object, e.g. '{\"order\": 42}'")
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--arg {pair!r} is not NAME=JSON, e.g. --arg order=42")
        found[name] = _decoded(f"--arg {name}", text)
    return found


def _decoded(option: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        quoted = msgspec.json.encode(text).decode()
        name = option.removeprefix("--arg ")
        hint = f". A text needs quotes of its own: --arg '{name}={quoted}'" if name != option else ""
        raise click.UsageError(f"{option}: this is not JSON{hint}") from None


def _job(house: House, task: str, arguments: dict[str, Any], call: dict[str, Any]) -> NewJob:
    tasks = house.app.tasks if house.app else {}
    destinations = {destination.task: destination for destination in house.settings.destinations.values()}
    if task in destinations:
        return _delivery(destinations[task], arguments, call)
    if task not in tasks:
        cure = did_you_mean(
            task, house.tasks, 'Name the app with its tasks: --app module:variable, or app = "…" in treppe.toml'
        )
        raise Failed(f'there is no task "{task}". {cure}')
    from treppe.app.task import Call

    return tasks[task].job(Call(**call), (), arguments)


def _delivery(destination: Destination, body: dict[str, Any], call: dict[str, Any]) -> NewJob:
    from treppe.intake import delivery_settings, new_id
    from treppe.job import NewJob

    settings = delivery_settings(destination)
    return NewJob(
        id=call["id"] or new_id(),
        payload=msgspec.json.encode(body),
        key=call["key"],
        priority=call["priority"] or 0,
        delay=call["delay"],
        **{**settings, "queue": call["queue"] or settings["queue"]},
    )


def _tell(placed: Placed, as_json: bool) -> None:
    if as_json:
        output.document({"id": placed.id, "duplicate": placed.duplicate})
    else:
        output.say(f"{placed.id}: {'there was one already, nothing was added' if placed.duplicate else 'accepted'}")
