"""What people do to jobs. An act counts only for the job as it was seen, and is written down with who and why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from treppe.cli import output
from treppe.cli.house import House, house, who
from treppe.cli.kit import Command, Failed
from treppe.errors import NotFound
from treppe.job import Event, State, sources_of

if TYPE_CHECKING:
    from treppe.job import Job
    from treppe.store.protocol import Store


LISTED: Final = 20
"""So many jobs are named one by one."""


class Act(msgspec.Struct, frozen=True):
    """A thing people do: the event, the words for it, and the only states it is offered for (None = all allowed)."""

    event: Event
    ask: str
    done: str
    states: tuple[State, ...] | None = None


_REVIVE: Final = Act(Event.REVIVE, "do it again", "will be done again")
_REVIVE_DEAD: Final = Act(Event.REVIVE, "do it again", "will be done again", (State.DEAD,))
_CANCEL: Final = Act(Event.CANCEL, "call it off", "called off")
_CONFIRM: Final = Act(Event.CONFIRM, "say that it happened", "done")
_DISCARD: Final = Act(Event.CANCEL, "discard it", "discarded", (State.DEAD,))


def _act(function: Callable[..., None]) -> Callable[..., None]:
    """The arguments that all acts on jobs share."""
    for option in (
        click.argument("ids", nargs=-1, metavar="[ID...]"),
        click.option("--token", type=int, help="Only if the job still has this token, as `show` names it."),
        click.option("--note", default="", help="Why; it is written down with your name."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    ):
        function = option(function)
    return house(function)


def _all(function: Callable[..., None]) -> Callable[..., None]:
    """For dead letters: all of them, or all that fit."""
    for option in (
        click.option("--all", "every", is_flag=True, help="All dead letters there are now, instead of single ones."),
        click.option("--queue", help="With --all: of this queue only."),
        click.option("--task", help="With --all: of this task only."),
        click.option("--text", help="With --all: whose id or error holds this."),
    ):
        function = option(function)
    return function


@click.command(cls=Command)
@_act
def revive(house: House, **given: Any) -> None:
    """Do dead or unclear jobs again, with all their attempts."""
    _carry_out(house, _REVIVE, **given)


@click.command(cls=Command)
@_act
def cancel(house: House, **given: Any) -> None:
    """Call jobs off. A running one is asked; what it has done stays done."""
    _carry_out(house, _CANCEL, **given)


@click.command(cls=Command)
@_act
def confirm(house: House, **given: Any) -> None:
    """Say that an unclear job has happened, or that a dead one was done by hand (with --note)."""
    _carry_out(house, _CONFIRM, **given)


@click.command("revive", cls=Command)
@_all
@_act
def revive_dead(house: House, **given: Any) -> None:
    """Do dead letters again, with all their attempts."""
    _carry_out(house, _REVIVE_DEAD, **given)


@click.command(cls=Command)
@_all
@_act
def discard(house: House, **given: Any) -> None:
    """Give dead letters up for good."""
    _carry_out(house, _DISCARD, **given)


def _carry_out(
    house: House, act: Act, ids: Sequence[str], token: int | None, note: str, yes: bool, every: bool = False, **fit: Any
) -> None:
    if bool(ids) == every:
        raise click.UsageError("name the jobs by their ids" + (", or say --all" if fit else ""))
    if token is not None and len(ids) != 1:
        raise click.UsageError("--token belongs to one job. Name one id")
    with house.store() as store:
        found = _dead_letters(store, fit) if every else [_seen(store, id, token) for id in dict.fromkeys(ids)]
        events = {job.id: _event(act, job) for job in found}
        if act.event is Event.CONFIRM and not note and any(job.state is State.DEAD for job in found):
            raise click.UsageError("a dead job that was done by hand needs a --note that says so")
        _ask(act, found, yes)
        refused = {id for event in dict.fromkeys(events.values()) for id in _change(store, found, events, event, note)}
    changed = [f"{job.id}: {act.done if events[job.id] is act.event else 'asked to stop'}" for job in found]
    _list([line for line, job in zip(changed, found, strict=True) if job.id not in refused], output.say)
    if refused:
        raise Failed(f"left as they are, for they have changed meanwhile: {', '.join(refused)}. Look again first")


def _dead_letters(store: Store, fit: dict[str, Any]) -> list[Job]:
    """All that fit, as they are now."""
    from treppe.store.protocol import MAX_BATCH, Filter

    found: list[Job] = []
    after: int | None = None
    while True:
        page = store.find(Filter(states=(State.DEAD,), **fit), after, MAX_BATCH)
        found += page.jobs
        after = page.after
        if after is None:
            break
    if not found:
        raise Failed("there is no such dead letter")
    return found


def _list(lines: Sequence[str], say: Callable[[str], None]) -> None:
    """The lines, or the first of very many."""
    for line in lines[:LISTED]:
        say(line)
    if len(lines) > LISTED:
        say(f"… and {len(lines) - LISTED} more")


def _seen(store: Store, id: str, token: int | None) -> Job:
    job = store.get(id)
    if job is None:
        raise NotFound("job", id)
    if token is not None and job.token != token:
        raise Failed(f'the job "{id}" has changed since: its token is {job.token}, not {token}. Look again first')
    return job


def _event(act: Act, job: Job) -> Event:
    """The event for this job; a running one can only be asked."""
    if act.event is Event.CANCEL and act.states is None and job.state is State.RUNNING:
        return Event.ASK_CANCEL
    allowed = [state for state in sources_of(act.event) if state is not State.RUNNING]
    if job.state not in (act.states or allowed):
        raise Failed(_wrong_state(act, job))
    return act.event


def _wrong_state(act: Act, job: Job) -> str:
    said = output.WORDS(f"state.{job.state}")
    if act.states and job.state in sources_of(act.event):
        command = "jobs revive" if act.event is Event.REVIVE else "jobs cancel"
        return f'the job "{job.id}" is {said}, not dead. For that: treppe {command} {job.id}'
    return f'the job "{job.id}" is {said}, so one cannot {act.ask}. See: treppe jobs show {job.id}'


def _ask(act: Act, jobs: Sequence[Job], yes: bool) -> None:
    _list([_as_seen(job) for job in jobs], output.note)
    if yes:
        return
    count = f" ({len(jobs)} jobs)" if len(jobs) > 1 else ""
    try:
        agreed = click.confirm(f"{act.ask.capitalize()}{count}?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise Failed("nobody is there to answer. To act without a question add --yes") from None
    if not agreed:
        raise Failed("nothing was changed")


def _as_seen(job: Job) -> str:
    said = output.WORDS(f"state.{job.state}")
    return f"{job.id}: {said}, token {job.token}" + (f", {job.error}" if job.error else "")


def _change(store: Store, jobs: Sequence[Job], events: dict[str, Event], event: Event, note: str) -> list[str]:
    from treppe.store.protocol import MAX_BATCH, Seen

    seen = [Seen(job.id, job.token) for job in jobs if events[job.id] is event]
    batches = [seen[start : start + MAX_BATCH] for start in range(0, len(seen), MAX_BATCH)]
    return [one.id for batch in batches for one in store.change(batch, event, who(), note)]
