"""``treppe queues``: look at them, stop them, let them go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from treppe.cli import output
from treppe.cli.house import House, house, who
from treppe.cli.kit import Failed, Group, as_json
from treppe.cli.status import figures, queue_table
from treppe.config.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from treppe.store.protocol import Store


@click.group(cls=Group)
def queues() -> None:
    """Look at queues, pause them, let them go on."""


@queues.command()
@as_json
@house
def ls(house: House, as_json: bool) -> None:
    """All queues with their figures, and why one is held."""
    summary = figures(house)
    if as_json:
        output.document({"at": summary.at, "queues": summary.queues})
    else:
        queue_table(summary)


_name = click.argument("name")
_note = click.option("--note", default="", help="Why; people will read it.")


@queues.command()
@_name
@_note
@house
def pause(house: House, name: str, note: str) -> None:
    """Start nothing more of this queue until it is resumed. It goes on accepting."""
    from treppe.eyes import hands

    _act(hands.pause, house, name, note, "is paused", "was paused already")


@queues.command()
@_name
@_note
@house
def resume(house: House, name: str, note: str) -> None:
    """End the pause of this queue; where there is none, end its hold."""
    from treppe.eyes import hands

    _act(hands.resume, house, name, note, "goes on", "was not held")


def _act(
    act: Callable[[Store, str, str, str], bool], house: House, name: str, note: str, changed: str, unchanged: str
) -> None:
    with house.store() as store:
        _known(house, store, name)
        output.say(f"{name} {changed if act(store, name, who(), note) else unchanged}")


def _known(house: House, store: Store, name: str) -> None:
    """Refuse a queue that neither the settings nor the store know: most likely it is misspelt."""
    settings = house.settings
    names = {destination.pace_queue for destination in settings.destinations.values()} | settings.queues.keys()
    names |= {queue.queue for queue in store.backlog().queues}
    if name not in names:
        raise Failed(f'there is no queue "{name}". {did_you_mean(name, names)}')
