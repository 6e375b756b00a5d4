"""What an answer, or its absence, means for the job. Pure: facts in, :class:`~treppe.job.Outcome` out.

The kinds are the rows of the charge table; ``policy.charge`` knows what each costs.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urljoin

import msgspec

from treppe.config import Destination
from treppe.delivery.redact import shown_url
from treppe.delivery.retry_after import wait_asked
from treppe.job import Kind, Outcome


class Answer(msgspec.Struct, frozen=True):
    """What came back. ``text`` is the decoded head of the body, our secrets blackened; ``url`` is what we called."""

    status: int
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    text: str = ""
    ms: int = 0

    def header(self, name: str) -> str | None:
        """The first header of that name (given in lower case), or None."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class NoAnswer(msgspec.Struct, frozen=True):
    """Nothing came back. ``left`` says whether a byte of the request may have gone out."""

    why: str
    url: str
    left: bool
    ms: int = 0


Reply = Answer | NoAnswer

ANSWER_SHOWN: Final = 2000
"""So many characters of an answer are kept for people."""

_VALUE_SHOWN: Final = 200
_SHOWN_HEADERS: Final = frozenset(
    (
        *("allow", "content-encoding", "content-length", "content-type", "date", "server", "via", "www-authenticate"),
        *("cf-ray", "idempotent-replayed", "request-id", "x-correlation-id", "x-request-id", "retry-after"),
        *("ratelimit", "ratelimit-limit", "ratelimit-policy", "ratelimit-remaining", "ratelimit-reset"),
        *("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"),
        *("x-rate-limit-limit", "x-rate-limit-remaining", "x-rate-limit-reset"),
    )
)

_KINDS: Final = {
    401: Kind.LOGIN,
    403: Kind.LOGIN,
    404: Kind.GONE,
    407: Kind.DOWN,
    408: Kind.AGAIN,
    410: Kind.GONE,
    425: Kind.AGAIN,
    429: Kind.THROTTLED,
}

_SENTENCES: Final = {
    Kind.LOGIN: "the target does not accept our login",
    Kind.GONE: "the target does not know this address",
    Kind.DOWN: "a proxy on the way asks for a login",
    Kind.AGAIN: "the target asks for the same again a little later",
    Kind.THROTTLED: "the target asks us to slow down",
    Kind.FAILED: "the target failed",
    Kind.REFUSED: "the target refuses this data",
}


def judge(reply: Reply, destination: Destination, now: float) -> Outcome:
    """The outcome of one exchange with *destination*; *now* in Unix seconds, for a ``Retry-After`` that is a date.

    >>> crm = Destination("crm", "https://crm.example/in")
    >>> judge(Answer(429, crm.url, (("Retry-After", "30"),)), crm, now=0.0).after
    30.0
    >>> judge(NoAnswer("no answer from crm.example within 30 s", crm.url, left=True), crm, now=0.0).error
    'no answer from crm.example within 30 s; nobody knows whether it acted'
    """
    if isinstance(reply, NoAnswer):
        return _judge_silence(reply)
    after = wait_asked(reply.headers, now)
    kind = _kind(reply.status, after is not None, destination)
    return Outcome(
        kind,
        error=_sentence(kind, reply),
        after=after,
        acted=_acted(kind, reply.status, destination),
        detail=_detail(reply),
    )


def not_sent(why: str, url: str) -> Outcome:
    """A setting keeps us from sending. Not the job's fault, so the queue is held and nothing is charged."""
    return _judge_silence(NoAnswer(why, url, left=False))


def _judge_silence(reply: NoAnswer) -> Outcome:
    detail = msgspec.json.encode({"ms": reply.ms, "url": shown_url(reply.url), "sent": reply.left})
    if reply.left:
        return Outcome(Kind.FAILED, f"{reply.why}; nobody knows whether it acted", detail=detail)
    return Outcome(Kind.DOWN, reply.why, acted=False, detail=detail)


def _kind(status: int, wait_is_asked: bool, destination: Destination) -> Kind:
    if status in _KINDS:
        return _KINDS[status]
    if status == 503 and wait_is_asked:
        return Kind.THROTTLED
    if status == 409 and destination.idempotency:  # the first call with this key is still running
        return Kind.AGAIN
    return {2: Kind.OK, 3: Kind.MOVED, 4: Kind.REFUSED}.get(status // 100, Kind.FAILED)


def _acted(kind: Kind, status: int, destination: Destination) -> bool | None:
    if kind is Kind.FAILED and status not in destination.not_acted:
        return None
    return kind is Kind.OK


def _sentence(kind: Kind, answer: Answer) -> str:
    if kind is Kind.OK:
        return ""
    if kind is Kind.MOVED:
        to = answer.header("location")
        return f"target moved to {_moved_to(answer, to) if to else 'an unknown place'} ({_status(answer.status)})"
    return f"{_SENTENCES[kind]} ({_status(answer.status)})"


def _status(status: int) -> str:
    phrases = [known.phrase for known in HTTPStatus if known == status]
    return " ".join([str(status), *phrases])


def _moved_to(answer: Answer, to: str) -> str:
    try:
        return shown_url(urljoin(answer.url, to))[:_VALUE_SHOWN]
    except ValueError:
        return "an unreadable address"


def _detail(answer: Answer) -> bytes:
    seen: dict[str, Any] = {
        "status": answer.status,
        "ms": answer.ms,
        "url": shown_url(answer.url),
        "headers": {n.lower(): v[:_VALUE_SHOWN] for n, v in answer.headers if n.lower() in _SHOWN_HEADERS},
        "answer": answer.text[:ANSWER_SHOWN],
    }
    return msgspec.json.encode(seen)
