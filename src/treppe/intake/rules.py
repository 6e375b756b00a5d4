"""What an entry must keep to before a store sees it, and the cure for each that does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from treppe.errors import InvalidJob
from treppe.job import NewEvent, NewJob, Repeat

_T = TypeVar("_T", NewJob, NewEvent)
_Rules = Sequence[tuple[str, Callable[[_T], bool], str]]


def obey(rules: _Rules[_T], thing: _T, kind: str) -> None:
    """InvalidJob for the first rule that *thing* breaks."""
    for field, holds, cure in rules:
        if not holds(thing):
            raise InvalidJob(f"{kind} {shown(thing.id)}: {field} is {shown(getattr(thing, field), field)}. {cure}")


def alike(one: NewJob, other: NewJob) -> bool:
    """True if both have the very same settings, so that the rules for these hold for both or neither."""
    return (
        one.task is other.task
        and one.queue is other.queue
        and one.content_type is other.content_type
        and one.priority is other.priority
        and one.repeat is other.repeat
        and one.attempts is other.attempts
        and one.crashes is other.crashes
        and one.delay is other.delay
        and one.at is other.at
        and one.expires is other.expires
        and one.deadline is other.deadline
        and one.keep is other.keep
    )


def shown(value: object, field: str = "") -> str:
    """A value as an error shows it."""
    if field in ("payload", "body"):  # never quoted: it may hold what must not get into a log
        return f"of type {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


_CENTURY: Final = 100 * 366 * 86400.0
_YEAR_9999: Final = 253_402_300_799.0
_PLAIN_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}")
_TASK: Final = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}")
_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9_.:/-]{0,127}")


def _is_text(value: object, pattern: re.Pattern[str] = _PLAIN_TEXT) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _is_count(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and _is_number(value, least, most)


_TEXT_CURE: Final = "Use text of 1 to 255 characters without control characters"
_QUEUE_CURE: Final = "Use up to 128 of a-z 0-9 _ . : / -, beginning with a letter or digit"
_SECONDS_CURE: Final = "Use seconds, from 0 to 100 years"
_SECONDS_OR_NONE: Final = _SECONDS_CURE + ", or None"

JOB_RULES: Final[_Rules[NewJob]] = (
    ("id", lambda job: _is_text(job.id), _TEXT_CURE),
    ("key", lambda job: job.key is None or _is_text(job.key), _TEXT_CURE + ", or None"),
    ("payload", lambda job: isinstance(job.payload, bytes), "Use bytes"),
    ("event", lambda job: job.event is None or not job.payload, "A job of an event has no payload of its own"),
)

SETTING_RULES: Final[_Rules[NewJob]] = (
    ("task", lambda job: _is_text(job.task, _TASK), "Use text of 1 to 255 characters without spaces"),
    ("queue", lambda job: _is_text(job.queue, _QUEUE), _QUEUE_CURE),
    ("content_type", lambda job: _is_text(job.content_type), _TEXT_CURE),
    ("priority", lambda job: _is_count(job.priority, -100, 100), "Use a whole number from -100 to 100"),
    ("repeat", lambda job: isinstance(job.repeat, Repeat), 'Use Repeat("safe"), Repeat("look") or Repeat("ask")'),
    ("attempts", lambda job: _is_count(job.attempts, 1, 100_000), "Use a whole number from 1 to 100000"),
    ("crashes", lambda job: _is_count(job.crashes, 1, 100_000), "Use a whole number from 1 to 100000"),
    ("delay", lambda job: _is_number(job.delay, 0, _CENTURY), _SECONDS_CURE),
    ("at", lambda job: job.at is None or _is_number(job.at, 0, _YEAR_9999), "Use Unix seconds before the year 10000"),
    ("at", lambda job: job.at is None or job.delay == 0, "Give at or delay, not both"),
    ("expires", lambda job: _is_number(job.expires, 0.001, _CENTURY), _SECONDS_CURE + ", more than 0"),
    ("deadline", lambda job: job.deadline is None or _is_number(job.deadline, 0, _CENTURY), _SECONDS_OR_NONE),
    ("keep", lambda job: _is_number(job.keep, 0, _CENTURY), _SECONDS_CURE),
)
"""What the jobs of one task have in common."""

EVENT_RULES: Final[_Rules[NewEvent]] = (
    ("id", lambda event: _is_text(event.id), _TEXT_CURE),
    ("source", lambda event: _is_text(event.source), _TEXT_CURE),
    ("body", lambda event: isinstance(event.body, bytes), "Use bytes"),
    ("topic", lambda event: event.topic == "" or _is_text(event.topic), _TEXT_CURE),
    ("content_type", lambda event: event.content_type == "" or _is_text(event.content_type), _TEXT_CURE),
)
