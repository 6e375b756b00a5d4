"""Many jobs at once, in the server's own COPY format: no INSERT is nearly as quick, nor writes so short a log.

COPY knows no duplicates. The first one ends the transaction, and then the jobs are put in the ordinary way; so a few of
the ids are looked up before. Rows travel in the order of their ids, as they do there, so that no two puts deadlock.

The format is that of the manual's page on COPY, "Binary Format": the number of fields, then each field behind its
length, -1 for null. What jobs in a row have in common is encoded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from struct import Struct, unpack

from psycopg.errors import UniqueViolation

from treppe.job import NewJob, Placed, Repeat, band_of
from treppe.store.postgres.database import SQL, Tx

LEAST = 200
"""With fewer jobs the round trips cost more than they save."""

ROWS_AT_ONCE = 250
"""The server stores rows while the next ones are encoded."""

ONE_IN = 64
"""So many ids are looked up before: those who repeat a put repeat all of it."""


class Taken(Exception):
    """One of the ids is taken."""


def load(
    tx: Tx, jobs: Sequence[NewJob], codes: Mapping[Repeat, int], patience: str, wake: str | None
) -> tuple[Placed, ...]:
    """Place jobs that are of no event. Taken where it is for INSERT to say of what."""
    in_order = sorted(range(len(jobs)), key=[job.id for job in jobs].__getitem__)
    some = [jobs[i].id for i in in_order[::ONE_IN]]
    ((_, is_taken, now, numbers),) = tx.rows(SQL["load_begin"], (patience, some, len(jobs)))
    if is_taken:
        raise Taken
    seqs = unpack(f">{len(jobs)}q", numbers)
    rows = _Rows(tx.clock_or(now), codes)
    try:
        tx.load(SQL["load_jobs"], _blocks(rows.encode(jobs[i], seqs[i]) for i in in_order))
    except UniqueViolation:
        raise Taken from None
    tx.load(SQL["load_live"], _blocks(rows.live))
    tx.rows(SQL["load_end"], (len(jobs), wake))
    return tuple([Placed(job.id, seq) for job, seq in zip(jobs, seqs, strict=True)])


class _Rows:
    """Encodes jobs one after the other, and puts their rows of the table ``live`` aside."""

    def __init__(self, now: float, codes: Mapping[Repeat, int]) -> None:
        self.live: list[bytes] = []
        self._now, self._codes = now, codes
        self._alike: tuple[object, ...] = ()
        self._of_job = self._of_live = b""

    def encode(self, job: NewJob, seq: int) -> bytes:
        alike = (
            job.task, job.queue, job.content_type, job.key, job.priority, job.repeat, job.attempts, job.crashes, job.at,
            job.delay, job.expires, job.deadline, job.keep, job.skip_dead,
        )  # fmt: skip
        if alike != self._alike:
            self._alike = alike
            self._begin_with(job)
        number, id, payload = _BIG(8, seq), job.id.encode(), job.payload
        self.live.append(self._of_live + number)
        return b"".join((self._of_job, number, _LENGTH(len(id)), id, _LENGTH(len(payload)), payload))

    def _begin_with(self, job: NewJob) -> None:
        """Every field but those that end a row: seq, and a job's id and payload."""
        due = job.at if job.at is not None else self._now + job.delay
        until, half = (None, None) if job.deadline is None else (due + job.deadline, due + job.deadline / 2)
        task, queue, key = _text(job.task), _text(job.queue), _text(job.key)
        code, skips = _SMALL(2, self._codes[job.repeat]), _BOOL(1, job.skip_dead)
        attempts, crashes = _INTEGER(4, job.attempts), _INTEGER(4, job.crashes)
        self._of_job = b"".join((
            _SHORT(17), task, queue, _text(job.content_type), _SMALL(2, job.priority), code, attempts, crashes,
            _double(job.expires), _double(job.deadline), _double(job.keep), skips, _double(self._now), _double(due),
            key,
        ))  # fmt: skip
        self._of_live = b"".join((
            _SHORT(14), queue, task, _SMALL(2, band_of(job.priority)), code, attempts, crashes, skips,
            _double(due), _double(due), _double(due + job.expires), _double(half), _double(until), key,
        ))  # fmt: skip


_SHORT, _LENGTH = Struct(">h").pack, Struct(">i").pack
_SMALL, _INTEGER, _BIG, _DOUBLE, _BOOL = (Struct(f">i{code}").pack for code in "hiqd?")
_NULL = _LENGTH(-1)
_FIRST, _LAST = b"PGCOPY\n\xff\r\n\0" + _LENGTH(0) + _LENGTH(0), _SHORT(-1)


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    encoded = value.encode()
    return _LENGTH(len(encoded)) + encoded


def _double(value: float | None) -> bytes:
    return _NULL if value is None else _DOUBLE(8, value)


def _blocks(rows: Iterable[bytes]) -> Iterator[bytes]:
    left = iter(rows)
    yield _FIRST
    while block := b"".join(islice(left, ROWS_AT_ONCE)):
        yield block
    yield _LAST
