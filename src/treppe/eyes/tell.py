"""What an alert says: what, since when, how many, what happens if you do nothing, one link. Pure."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec

from treppe.eyes.episode import Finding, Message, Tone
from treppe.eyes.plain import line
from treppe.eyes.words import Words, iso
from treppe.job import Job

NAMED: Final = 10
"""So many jobs are named; of the others the number is given."""


class Sight(msgspec.Struct, frozen=True):
    """A finding with what people want to know about it. ``rule`` is a heading of the catalogue, e.g. ``dead``."""

    rule: str
    finding: Finding
    jobs: tuple[Job, ...] = ()
    more: bool = False  # there may be more than were counted
    queue: str = ""
    why: str = ""
    resumes_at: float | None = None


class Told(msgspec.Struct, frozen=True):
    """What surrounds a message: who is told, how often, where to look. ``board`` is the board's address or None."""

    id: str
    alert: str
    since: float
    news: int
    digest: float
    board: str | None = None


def compose(sight: Sight, tone: Tone, told: Told, words: Words) -> Message:
    """The message for one recipient."""
    heading = f"alert_{sight.rule}"
    why = words(f"hold.{sight.why or 'other'}")
    subject = words(
        f"{heading}.{'clear' if tone == 'clear' else 'subject'}", n=sight.finding.total, queue=sight.queue, why=why
    )
    subject = words(f"alert.{tone}", subject=subject)
    body = [_sentence(subject), "", *_lines(sight, tone, told, words)]
    return Message(told.id, tone, f"Treppe: {subject}", "\n".join(body) + "\n", _facts(sight, tone, told))


def link(sight: Sight, board: str | None) -> str | None:
    """Where to look: the job itself when there is just one, else the page that lists them.

    >>> link(Sight("dead", Finding(True, 2)), "https://shop.example/board")
    'https://shop.example/board/dead'
    """
    if board is None:
        return None
    if sight.finding.total == 1 and sight.jobs:
        return f"{board}/job?id={quote(sight.jobs[0].id, safe='')}"
    return f"{board}/{_PAGES[sight.rule]}"


_PAGES: Final = {"dead": "dead", "unclear": "unclear", "late_50": "jobs", "late_100": "jobs", "held": "queues"}


def _lines(sight: Sight, tone: Tone, told: Told, words: Words) -> list[str]:
    where = link(sight, told.board)
    look = [words("alert.look", link=where)] if where else []
    since = words("alert.since", at=words.moment(told.since))
    if tone == "clear":
        return [since, *look]
    news = [words("alert.new", n=told.news)] if tone == "digest" and sight.jobs else []
    return [
        since,
        *_named(sight, words),
        *news,
        "",
        words("alert.if_nothing", what=_if_nothing(sight, words)),
        *look,
        "",
        words("alert.next", in_=words.span(told.digest)),
    ]


def _named(sight: Sight, words: Words) -> list[str]:
    if not sight.jobs:
        return []
    names = ", ".join(_names(sight))
    more = sight.finding.total - len(sight.jobs[:NAMED])
    lines = [words("alert.jobs", ids=f"{names} {words('alert.more', n=more)}" if more > 0 else names)]
    if sight.more:
        lines.append(words("alert.at_least", n=sight.finding.total))
    error = _error(sight)
    return [*lines, words("alert.error", error=error)] if error else lines


def _names(sight: Sight) -> list[str]:
    return [line(job.id, 255) for job in sight.jobs[:NAMED]]


def _error(sight: Sight) -> str:
    return line(next((job.error for job in sight.jobs if job.error), ""))


def _if_nothing(sight: Sight, words: Words) -> str:
    if sight.resumes_at is not None:
        return words(f"alert_{sight.rule}.nothing_until", at=words.moment(sight.resumes_at))
    return words(f"alert_{sight.rule}.nothing")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _facts(sight: Sight, tone: Tone, told: Told) -> dict[str, object]:
    facts: dict[str, object] = {
        "rule": sight.rule,
        "alert": told.alert,
        "tone": tone,
        "since": iso(told.since),
        "total": sight.finding.total,
    }
    if tone == "clear":
        return facts
    more = {"ids": _names(sight), "error": _error(sight), "queue": sight.queue, "why": sight.why}
    return facts | {name: value for name, value in more.items() if value}
