"""What all drivers have in common: statements come from a generator, their rows go back into it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from treppe.errors import StoreError, Unsupported
from treppe.store.protocol import Put, Statement

Row = tuple[Any, ...]
Steps = Generator[Statement, list[Row], Put]

DATABASES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}


class Home(msgspec.Struct, frozen=True):
    """Where the jobs are: in a file of SQLite (None where it is not known), or in PostgreSQL.

    ``place(again)`` asks the jobs' database which one it is (see postgres.PLACE); None when it does not answer now.
    """

    dialect: str = "sqlite"
    file: Path | None = None
    place: Callable[[bool], Row | None] = lambda again: None

    def refuse_other(self, dialect: str) -> None:
        """StoreError when the caller's connection is to another kind of database."""
        if dialect not in DATABASES:
            raise Unsupported(f"within= cannot use a connection to {dialect}: Treppe has no store there")
        if dialect != self.dialect:
            ours = "in PostgreSQL" if self.file is None else f"in {self.file}"
            raise elsewhere(DATABASES[dialect], ours)


def elsewhere(theirs: object, ours: object) -> StoreError:
    """The error for a connection that could not commit the jobs."""
    return StoreError(
        f"your connection is to {theirs}, the jobs are {ours}. "
        "To commit together they must share one database: name yours as the store"
    )


def in_autocommit(cure: str) -> Unsupported:
    """The error for a connection that would commit the job at once."""
    return Unsupported(
        f"this connection is in autocommit: the job would commit alone, whatever becomes of your order. {cure}"
    )


def carry(steps: Steps, execute: Callable[[str, Sequence[Any]], list[Row]]) -> Put:
    """Run the statements one after the other; an error goes into the generator, too."""
    try:
        statement = next(steps)
        while True:
            try:
                rows = execute(*statement)
            except BaseException as error:
                statement = steps.throw(error)
            else:
                statement = steps.send(rows)
    except StopIteration as end:
        return _answer(end)


async def acarry(steps: Steps, execute: Callable[[str, Sequence[Any]], Awaitable[list[Row]]]) -> Put:
    """The same for async code."""
    try:
        statement = next(steps)
        while True:
            try:
                rows = await execute(*statement)
            except BaseException as error:
                statement = steps.throw(error)
            else:
                statement = steps.send(rows)
    except StopIteration as end:
        return _answer(end)


def _answer(end: StopIteration) -> Put:
    answer: Put = end.value
    return answer
