"""The pages: they read, and change nothing."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from treppe.eyes.board import show
from treppe.eyes.board.desk import Trouble, Visit
from treppe.eyes.board.reasons import why
from treppe.eyes.plain import line
from treppe.job import Event, Job, State
from treppe.store.protocol import Filter, Page

ROWS: Final = 50
DEAD_ROWS: Final = 200
LIVE: Final = 10
"""Seconds after which the overview renews itself."""

OFFERS: Final[dict[State, tuple[Event, ...]]] = {
    State.UNCLEAR: (Event.CONFIRM, Event.REVIVE, Event.BURY),
    State.DEAD: (Event.REVIVE, Event.CONFIRM, Event.CANCEL),
    State.WAITING: (Event.CANCEL,),
    State.HANDED_OVER: (Event.CONFIRM, Event.CANCEL),
    State.RUNNING: (Event.ASK_CANCEL,),
}
"""The buttons by state."""


class Group(msgspec.Struct):
    """Dead letters with the same error."""

    error: str
    jobs: list[Job]

    @property
    def ended(self) -> list[float]:
        """When they died, in order."""
        return sorted(job.ended_at for job in self.jobs if job.ended_at is not None)


def overview(visit: Visit) -> Response:
    """How much there is, how old it is, and what needs a human."""
    live = visit.ask("live") != "off"
    return visit.page("overview.html", summary=visit.desk.figures.summary(), live=LIVE if live else None)


def jobs(visit: Visit) -> Response:
    """A list of jobs, newest first."""
    wanted = _filter(visit)
    return visit.page("jobs.html", found=_find(visit, wanted, ROWS), wanted=wanted, states=tuple(State))


def job(visit: Visit) -> Response:
    """Everything about one job."""
    store, id = visit.desk.store, visit.ask("id")
    found = store.get(id)
    if found is None:
        raise Trouble(404, "missing", id=line(id, 255))
    event = store.event(*found.event) if found.event is not None else None
    summary = visit.desk.figures.summary()
    return visit.page(
        "job.html",
        job=found,
        now=store.now(),
        reasons=why(found, summary.queue(found.queue), store.now(), visit.words),
        payload=show.payload(found.payload or b"", found.content_type),
        result=show.payload(found.result) if found.result else None,
        headers=show.headers(event.headers) if event is not None else [],
        notes=[(name, show.payload(value).text) for name, value in sorted(store.notes(id).items())],
        history=[(attempt, show.detail(attempt.detail)) for attempt in found.history],
        offers=OFFERS.get(found.state, ()),
    )


def dead(visit: Visit) -> Response:
    """The dead letters, grouped by their error."""
    found = _find(visit, Filter(states=(State.DEAD,)), DEAD_ROWS)
    return visit.page("dead.html", found=found, groups=grouped(found.jobs), offers=OFFERS[State.DEAD])


def unclear(visit: Visit) -> Response:
    """The unclear jobs, each with its questions."""
    found = _find(visit, Filter(states=(State.UNCLEAR,)), ROWS)
    return visit.page("unclear.html", found=found, offers=OFFERS[State.UNCLEAR])


def queues(visit: Visit) -> Response:
    """Every queue with its pace, and the button that pauses it."""
    return visit.page("queues.html", summary=visit.desk.figures.summary())


def stats(visit: Visit) -> Response:
    """The figures for machines."""
    return Response(msgspec.json.encode(visit.desk.figures.summary()), media_type="application/json")


def grouped(jobs: tuple[Job, ...]) -> list[Group]:
    """Jobs with the same error together, the largest group first; digits make no difference.

    >>> grouped(())
    []
    """
    groups: dict[str, Group] = {}
    for job in jobs:
        groups.setdefault(_fingerprint(job), Group(line(job.error), [])).jobs.append(job)
    return sorted(groups.values(), key=lambda group: len(group.jobs), reverse=True)


def _fingerprint(job: Job) -> str:
    return "".join("0" if sign.isdigit() else sign for sign in line(job.error))


def _filter(visit: Visit) -> Filter:
    state = visit.ask("state")
    if state and state not in tuple(State):
        cure = visit.words("trouble.states", states=", ".join(State))
        raise Trouble(400, "bad_value", name="state", value=line(state, 50), cure=cure)
    queue, task, key, text = (visit.ask(name).strip()[:255] or None for name in ("queue", "task", "key", "q"))
    return Filter(states=(State(state),) if state else (), queue=queue, task=task, key=key, text=text)


def _find(visit: Visit, wanted: Filter, n: int) -> Page:
    after = visit.ask("after")
    if after and not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise Trouble(400, "bad_value", name="after", value=line(after, 50), cure=visit.words("trouble.number"))
    return visit.desk.store.find(wanted, int(after) if after else None, n)
