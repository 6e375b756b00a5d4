"""Why a job waits, in a sentence. Derived when it is read: nothing of it is stored."""

from __future__ import annotations

from treppe.eyes.measure import QueueFigures
from treppe.eyes.words import Words
from treppe.job import Job, State


def why(job: Job, queue: QueueFigures, now: float, words: Words) -> list[str]:
    """The reasons that hold now, the most telling one first; empty for a job that does not wait."""
    if job.state is State.RUNNING:
        return [words("why.cancelling")] if job.cancelling else []
    if job.state is not State.WAITING:
        return []
    reasons = [*_own(job, now, words), *([hold(queue, words)] if queue.held else [])]
    return reasons or [words("why.paced" if queue.paced else "why.due")]


def hold(queue: QueueFigures, words: Words) -> str:
    """Why a held queue does not go."""
    if queue.paused:
        return words("why.paused", why=cause(queue, words))
    return words("why.held", why=cause(queue, words), at=words.moment(queue.resumes_at))


def cause(queue: QueueFigures, words: Words) -> str:
    """What holds a queue, without the rest of the sentence."""
    if queue.paused:
        return words("hold.paused_note" if queue.note else "hold.paused", by=queue.by, note=queue.note)
    return words(f"hold.{queue.why or 'other'}")


def _own(job: Job, now: float, words: Words) -> list[str]:
    """What the job itself waits for."""
    reasons = [words("why.behind", id=job.behind)] if job.behind is not None else []
    due = job.run_at if job.run_at is not None else job.due_at
    if due > now:
        key = "why.retry" if job.claims else "why.scheduled"
        reasons.append(words(key, at=words.moment(due), in_=words.span(due - now)))
    return [*reasons, words("why.suspect")] if job.suspect else reasons
