"""``treppe jobs`` and ``treppe dead``: look at jobs. What people do to them is in ``acts``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from treppe.cli import acts, output
from treppe.cli.house import House, house
from treppe.cli.kit import Failed, Group, as_json
from treppe.errors import NotFound
from treppe.job import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from treppe.job import Job
    from treppe.store.protocol import Store


@click.group(cls=Group)
def jobs() -> None:
    """Look at jobs, do them again, confirm them, call them off."""


@click.group(cls=Group)
def dead() -> None:
    """Look at dead letters, do them again, discard them."""


_id = click.argument("id")


def _listing(command: Callable[..., Any]) -> Any:
    """What every list of jobs may be asked."""
    options = (
        click.option("--queue", help="Of this queue only."),
        click.option("--task", help="Of this task only; a destination's is destination:NAME."),
        click.option("--text", help="Whose id or error holds this."),
        click.option("-n", "most", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many."),
        click.option("--after", type=int, help="Go on after the page before, which names this number."),
        as_json,
        house,
    )
    return functools.reduce(lambda made, option: option(made), reversed(options), command)


@jobs.command("ls")
@click.option(
    "--state",
    "states",
    type=click.Choice([state.value for state in State]),
    multiple=True,
    help="In this state; repeat for more.",
)
@click.option("--key", help="Of this order key only.")
@_listing
def ls(house: House, /, most: int, after: int | None, as_json: bool, **wanted: Any) -> None:
    """Jobs, the newest first."""
    _list(house, most, after, as_json, **wanted)


@dead.command("ls")
@_listing
def dead_ls(house: House, /, most: int, after: int | None, as_json: bool, **wanted: Any) -> None:
    """Dead letters, the newest first."""
    _list(house, most, after, as_json, states=(State.DEAD,), **wanted)


@jobs.command("show")
@_id
@as_json
@house
def show(house: House, id: str, as_json: bool) -> None:
    """One job: its state, what it waits for, every attempt, its payload."""
    with house.store() as store:
        _show(house, store, _get(store, id), as_json)


@dead.command("show")
@_id
@as_json
@house
def dead_show(house: House, id: str, as_json: bool) -> None:
    """One dead letter, as `jobs show` does."""
    with house.store() as store:
        job = _get(store, id)
        if job.state is not State.DEAD:
            raise Failed(f'the job "{id}" is {_said(job.state)}, not dead. See: treppe jobs show {id}')
        _show(house, store, job, as_json)


jobs.add_command(acts.revive)
jobs.add_command(acts.cancel)
jobs.add_command(acts.confirm)
dead.add_command(acts.revive_dead)
dead.add_command(acts.discard)


def _get(store: Store, id: str) -> Job:
    job = store.get(id)
    if job is None:
        raise NotFound("job", id)
    return job


def _list(house: House, most: int, after: int | None, as_json: bool, **wanted: Any) -> None:
    from treppe.store.protocol import Filter

    with house.store() as store:
        page = store.find(Filter(**wanted | {"states": tuple(map(State, wanted["states"]))}), after, most)
        now = store.now()
    if as_json:
        output.document({"jobs": [_facts(job) for job in page.jobs], "after": page.after})
        return
    columns = ("id", "state", "queue", "task", "tries", "age", "error")
    rows = [
        (job.id, _said(job.state), job.queue, job.task, job.claims, output.age(now - job.created_at), job.error)
        for job in page.jobs
    ]
    output.table(columns, rows, "no such job", ("tries",))
    if page.after is not None:
        output.note(f"there are more: --after {page.after}")


def _show(house: House, store: Store, job: Job, as_json: bool) -> None:
    event = store.event(*job.event) if job.event else None
    body = job.payload if event is None else event.body
    if as_json:
        output.document(_facts(job) | {"history": [_attempt(each) for each in job.history]} | _payload(body))
        return
    now = store.now()
    output.fields(
        [
            ("id", job.id),
            ("state", _said(job.state)),
            ("waits", "; ".join(_reasons(house, store, job, now))),
            ("queue", job.queue),
            ("task", job.task),
            ("key", job.key),
            ("tries", f"{job.claims} (charged: {job.charged} of {job.attempts})"),
            ("token", job.token),
            ("repeat", job.repeat),
            ("accepted", _moment(job.created_at)),
            ("due", _moment(job.due_at)),
            ("deadline", _moment(job.deadline_at)),
            ("expires", _moment(job.expires_at)),
            ("ended", _moment(job.ended_at)),
            ("event", " ".join(job.event or ())),
            ("result", None if job.result is None else _text(job.result)),
            ("error", job.error),
        ]
    )
    _history(job)
    _body(body, job.content_type)


def _reasons(house: House, store: Store, job: Job, now: float) -> list[str]:
    from treppe.app import pacer_for
    from treppe.config.words import did_you_mean
    from treppe.eyes.board.reasons import why
    from treppe.eyes.measure import Figures

    if job.state is not State.WAITING:
        return []
    if job.task not in house.tasks:
        cure = did_you_mean(job.task, house.tasks, "Name the app with its tasks: --app module:variable")
        return [f"no worker with these settings knows the task. {cure}"]
    queue = Figures(store, pacer_for(house.settings.queues)).summary().queue(job.queue)
    return why(job, queue, now, output.WORDS)


def _history(job: Job) -> None:
    if not job.history:
        return
    output.say("")
    rows = [
        (
            each.token,
            _moment(each.finished_at),
            each.event.replace("_", " "),
            each.kind,
            "yes" if each.charged else "",
            each.error,
        )
        for each in job.history
    ]
    output.table(("try", "ended", "then", "how", "charged", "error"), rows, "", ("try",))


def _body(body: bytes | None, content_type: str) -> None:
    from treppe.eyes.board.show import payload

    if body:
        shown = payload(body, content_type)
        output.say(f"\n{shown.text}" + (f"\n… {shown.size} bytes in all" if shown.cut else ""))


def _said(state: State) -> str:
    return output.WORDS(f"state.{state}")


def _moment(at: float | None) -> str:
    return "" if at is None else output.WORDS.moment(at)


def _facts(job: Job) -> dict[str, Any]:
    """A job for machines, without bytes."""
    hidden = ("payload", "history", "result")
    facts = {name: getattr(job, name) for name in job.__struct_fields__ if name not in hidden}
    return facts | {"result": None if job.result is None else _text(job.result)}


def _attempt(attempt: Any) -> dict[str, Any]:
    facts = {name: getattr(attempt, name) for name in attempt.__struct_fields__}
    return facts | {name: None if facts[name] is None else _text(facts[name]) for name in ("result", "detail")}


def _payload(body: bytes | None) -> dict[str, Any]:
    """Text as text; what is none in base64, as msgspec writes bytes."""
    if body is None:
        return {"payload": None}
    try:
        return {"payload": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"payload_base64": body}


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
