"""What people may change: jobs as they saw them, queues. Every act is in the audit."""

from __future__ import annotations

import re
from typing import Final

from starlette.responses import Response

from treppe.eyes import hands
from treppe.eyes.board.desk import EVENTS, Trouble, Visit
from treppe.eyes.board.gate import same
from treppe.eyes.plain import line
from treppe.job import Event, State
from treppe.store.protocol import MAX_BATCH, Seen

NOTE: Final = 500
"""The longest note, in characters."""

_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9_.:/-]{0,127}")
_BACK: Final = frozenset({"dead", "unclear", "jobs"})


def act(visit: Visit) -> Response:
    """Carry out a human act on jobs, each exactly as it was seen."""
    by = _actor(visit)
    event, seen, note = _event(visit), _seen(visit), _note(visit)
    if event is Event.CONFIRM and not note and any(_is_dead(visit, one.id) for one in seen):
        raise Trouble(422, "note_needed")
    refused = visit.desk.store.change(seen, event, by, note)
    visit.desk.figures.forget()
    told = {"said": event.value, "n": len(seen) - len(refused), "refused": len(refused)}
    back = visit.said("back")
    return visit.go(back, **told) if back in _BACK else visit.go("job", id=seen[0].id, **told)


def queue(visit: Visit) -> Response:
    """Pause or resume a queue."""
    by, name, action, note = _actor(visit), visit.said("queue"), visit.said("action"), _note(visit)
    change = {"pause": hands.pause, "resume": hands.resume}.get(action)
    if change is None:
        cure = visit.words("trouble.events", events="pause, resume")
        raise Trouble(400, "bad_value", name="action", value=line(action, 50), cure=cure)
    if not _QUEUE.fullmatch(name):
        raise Trouble(400, "bad_value", name="queue", value=line(name, 50), cure="")
    changed = change(visit.desk.store, name, by, note)
    visit.desk.figures.forget()
    return visit.go("queues", said=action if changed else "unchanged")


def _actor(visit: Visit) -> str:
    """The name of whoever may act, or a refusal."""
    session = visit.who
    if not same(session.csrf, visit.said("csrf")):
        raise Trouble(403, "csrf")
    if not session.acts:
        raise Trouble(403, "forbidden", role=visit.words(f"role.{session.user.role}"))
    return session.user.name


def _event(visit: Visit) -> Event:
    given = visit.said("event")
    if given not in EVENTS:
        cure = visit.words("trouble.events", events=", ".join(EVENTS))
        raise Trouble(400, "bad_value", name="event", value=line(given, 50), cure=cure)
    return Event(given)


def _seen(visit: Visit) -> list[Seen]:
    ids, tokens = visit.form.get("id", []), visit.form.get("token", [])
    if not ids:
        raise Trouble(400, "ids")
    if len(ids) > MAX_BATCH:
        raise Trouble(400, "too_many", n=MAX_BATCH)
    if len(ids) != len(tokens):
        raise Trouble(400, "pairs")
    for token in tokens:
        if not (token.isascii() and token.isdigit() and len(token) <= 18):
            cure = visit.words("trouble.number")
            raise Trouble(400, "bad_value", name="token", value=line(token, 50), cure=cure)
    return [Seen(id, int(token)) for id, token in zip(ids, tokens, strict=True)]


def _note(visit: Visit) -> str:
    note = line(visit.said("note"), NOTE + 1)
    if len(note) > NOTE:
        raise Trouble(422, "note_long", n=NOTE)
    return note


def _is_dead(visit: Visit, id: str) -> bool:
    job = visit.desk.store.get(id)
    return job is not None and job.state is State.DEAD
