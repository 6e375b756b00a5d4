"""What all drivers have in common: statements come from a generator, their rows go back into it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from treppe.errors import Unsupported
from treppe.store.protocol import Put, Statement

Row = tuple[Any, ...]
Steps = Generator[Statement, list[Row], Put]


def in_autocommit(cure: str) -> Unsupported:
    """The error for a connection that would commit the job at once."""
    return Unsupported(
        f"this connection is in autocommit: the job would commit alone, whatever becomes of your order. {cure}"
    )


def without_comments(sql: str) -> str:
    """The statement without its lines of comment: a placeholder there would be filled in, too."""
    return re.sub(r"(?m)^\s*--.*\n?", "", sql)


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
