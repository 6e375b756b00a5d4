"""Ledgers: append-only files with one JSON line per call, written before the answer leaves.

What the stand-ins wrote down is the only truth the reconciliation believes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Generic, TypeVar

import msgspec


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call as the remote side saw it. ``at`` is when it came in (Unix seconds).

    ``answer`` is None when the caller never got one; ``acted`` says whether the call changed anything.
    """

    at: float
    order: int
    customer: int
    seq: int
    key: str | None
    who: str
    answer: int | None
    acted: bool
    note: str = ""

    @property
    def told(self) -> bool:
        """True when the caller was told that it worked."""
        return self.answer is not None and 200 <= self.answer < 300


class Posted(msgspec.Struct, frozen=True, omit_defaults=True):
    """One webhook as the shop saw it: ``status`` is the last answer (0 = none), ``ms`` how long that took."""

    at: float
    order: int
    event: str
    customer: int
    seq: int
    status: int
    ms: float
    tries: int = 1
    again: bool = False  # the shop sent this event a second time

    @property
    def accepted(self) -> bool:
        """True when the shop got its 2xx."""
        return 200 <= self.status < 300


class Told(msgspec.Struct, frozen=True):
    """One message to a human that arrived. ``genuine`` is False for a bad signature."""

    at: float
    channel: str
    genuine: bool
    text: str


class Moment(msgspec.Struct, frozen=True):
    """Something worth telling whoever watches."""

    at: float
    text: str


T = TypeVar("T", bound=msgspec.Struct)


class Ledger(Generic[T]):
    """The writing end; every line is in the file when ``write`` returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, line: T) -> None:
        """Append one line, in one system call, so that several processes may share a file."""
        os.write(self._file, msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Tail(Generic[T]):
    """The reading end: what was written since the last look."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        self._path = path
        self._decode = msgspec.json.Decoder(kind).decode
        self._offset = 0

    def new(self) -> list[T]:
        """The complete lines that were added; none when there is no file yet."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        return [self._decode(line) for line in complete.splitlines()]


def read(path: Path, kind: type[T]) -> list[T]:
    """All lines of a ledger, in the order they were written."""
    return Tail(path, kind).new()
