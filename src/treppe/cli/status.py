"""``treppe status``: how much there is, how old the oldest is, and what does not go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from treppe.cli import output
from treppe.cli.house import House, house
from treppe.cli.kit import Command, as_json

if TYPE_CHECKING:
    from treppe.eyes.measure import QueueFigures, Summary


@click.command(cls=Command)
@as_json
@house
def status(house: House, as_json: bool) -> None:
    """The figures: open jobs, the oldest age, every queue, and what is held."""
    summary = figures(house)
    if as_json:
        output.document(summary)
        return
    oldest = f", the oldest due for {output.age(summary.oldest_age_s)}" if summary.oldest_age_s is not None else ""
    output.say(f"{summary.open} open{oldest}")
    output.say(f"{summary.accepted} accepted, {summary.done} done, {summary.dead} dead, {summary.unclear} unclear\n")
    queue_table(summary)


def figures(house: House) -> Summary:
    """The figures of the store, counted now."""
    from treppe.app import pacer_for
    from treppe.eyes.measure import Figures

    with house.store() as store:
        return Figures(store, pacer_for(house.settings.queues)).summary()


def queue_table(summary: Summary) -> None:
    """Every queue in one line."""
    columns = ("queue", "waiting", "later", "running", "unclear", "dead", "oldest", "pace")
    rows = [
        (
            queue.queue,
            queue.waiting + queue.behind,
            queue.scheduled + queue.retrying,
            queue.running + queue.handed_over,
            queue.unclear,
            queue.dead,
            output.age(queue.oldest_age_s),
            _pace(queue),
        )
        for queue in summary.queues
    ]
    output.table(columns, rows, "no queue has an open job", columns[1:7])


def _pace(queue: QueueFigures) -> str:
    from treppe.eyes.board.reasons import hold

    if queue.held:
        return hold(queue, output.WORDS)
    return "full" if queue.openness >= 1 else f"{output.WORDS.share(queue.openness)} of the full pace"
