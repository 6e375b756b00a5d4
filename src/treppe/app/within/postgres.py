"""What all drivers of PostgreSQL have in common: which database it is, and how they write parameters.

No savepoint is set: the plan writes with one statement, and where a statement fails PostgreSQL lets nothing of the
transaction commit. A savepoint would cost two more round trips and a number of its own for each job.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from treppe.app.within.home import PLACE, Home, elsewhere
from treppe.app.within.steps import Row, Steps, without_comments
from treppe.store.protocol import Plan


def checked(plan: Plan, home: Home, raw: Any) -> Steps:
    """The plan, if the connection is to the database of the jobs. That is asked once a connection, not once a job."""
    home.refuse_other("postgresql")
    ours = home.place()
    if _seen.get(raw) != ours:
        (theirs,) = yield PLACE, ()
        if theirs != ours and theirs != (ours := home.place(again=True)):  # the tables may have been made anew since
            raise elsewhere(*_told_apart(theirs, ours))
        _seen[raw] = theirs
    return (yield from plan)


def named(sql: str, parameters: Sequence[Any]) -> tuple[str, dict[str, Any] | None]:
    """The statement with ``%(p1)s`` in the place of ``$1``.

    >>> named("SELECT $1::bytea, '%' || $2::text || $1", (b"a", "b"))
    ("SELECT %(p1)s::bytea, '%%' || %(p2)s::text || %(p1)s", {'p1': b'a', 'p2': 'b'})

    Without parameters nothing is in the way of a percent sign:

    >>> named("SELECT '%'", ())
    ("SELECT '%'", None)
    """
    if not parameters:
        return sql, None
    return _named(sql), {f"p{n}": value for n, value in enumerate(parameters, 1)}


def plain(rows: Sequence[Sequence[Any]]) -> list[Row]:
    """Tuples with bytes in them: psycopg 2 gives memoryviews."""
    return [tuple(bytes(value) if isinstance(value, memoryview) else value for value in row) for row in rows]


_seen: WeakKeyDictionary[Any, Row] = WeakKeyDictionary()


@lru_cache(256)
def _named(sql: str) -> str:
    return re.sub(r"\$(\d+)", r"%(p\1)s", without_comments(sql).replace("%", "%%"))


def _told_apart(theirs: Row, ours: Row) -> tuple[str, str]:
    if theirs[0] != ours[0]:
        return f'the database "{theirs[0]}"', f'in "{ours[0]}"'
    return f'another database "{theirs[0]}"', "in one of the same name"
