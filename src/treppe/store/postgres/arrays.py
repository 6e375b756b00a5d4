"""Lists as arrays of the server, in binary. The driver's own way looks at each element several times.

A list holds elements of one type and None. The wire format is that of ``array_send`` in PostgreSQL's source:
dimensions, a flag for nulls, the element's type, length and lower bound; then each element behind its length, -1 for
null.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any

from psycopg import ProgrammingError
from psycopg.adapt import Buffer, Dumper, PyFormat
from psycopg.pq import Format

_HEAD = Struct(">iiIii").pack
_LENGTH = Struct(">i").pack
_NULL = _LENGTH(-1)


class ListDumper(Dumper):
    """Finds the dumper for a list by the type of its first element."""

    def get_key(self, obj: list[Any], format: PyFormat) -> Any:  # noqa: A002 - the driver's name
        """The list's element type stands for it."""
        for element in obj:
            if element is not None:
                return list, type(element)
        return list, None

    def upgrade(self, obj: list[Any], format: PyFormat) -> Dumper:  # noqa: A002
        """The dumper for lists like this one."""
        kind = self.get_key(obj, format)[1]
        if kind not in _DUMPERS:
            raise ProgrammingError(f"an array cannot hold elements of type {kind.__name__}")
        return _DUMPERS[kind](list, self.connection)

    def dump(self, obj: list[Any]) -> Buffer | None:
        """Never asked: each list has a dumper of its own."""
        raise NotImplementedError


class _Empty(ListDumper):
    """Nothing, or only nulls: the server knows the type from the statement."""

    def dump(self, obj: list[Any]) -> Buffer | None:
        return b"{%b}" % b",".join([b"NULL"] * len(obj))


class _Binary(ListDumper):
    format = Format.BINARY
    element: int

    def dump(self, obj: list[Any]) -> Buffer | None:
        nulls = None in obj
        head = _HEAD(1, nulls, self.element, len(obj), 1)
        return head + (self._some(obj) if nulls else self._all(obj))

    def _all(self, obj: list[Any]) -> bytes:
        raise NotImplementedError

    def _some(self, obj: list[Any]) -> bytes:
        raise NotImplementedError


class _Fixed(_Binary):
    """Numbers: without nulls all of them with one call."""

    size: int
    code: str

    def _all(self, obj: list[Any]) -> bytes:
        cells = [self.size] * (2 * len(obj))
        cells[1::2] = obj
        return _packer(self.code, len(obj))(*cells)

    def _some(self, obj: list[Any]) -> bytes:
        pack, size = _packer(self.code, 1), self.size
        return b"".join([_NULL if element is None else pack(size, element) for element in obj])


class _Bytes(_Binary):
    oid, element = 1001, 17

    def _all(self, obj: list[bytes]) -> bytes:
        return b"".join([_LENGTH(len(element)) + element for element in obj])

    def _some(self, obj: list[bytes | None]) -> bytes:
        return b"".join([_NULL if element is None else _LENGTH(len(element)) + element for element in obj])


class _Texts(_Bytes):
    oid, element = 1009, 25

    def _all(self, obj: list[str]) -> bytes:  # type: ignore[override]
        return super()._all([element.encode() for element in obj])

    def _some(self, obj: list[str | None]) -> bytes:  # type: ignore[override]
        return super()._some([None if element is None else element.encode() for element in obj])


class _Integers(_Fixed):
    oid, element, size, code = 1016, 20, 8, "iq"


class _Floats(_Fixed):
    oid, element, size, code = 1022, 701, 8, "id"


class _Bools(_Fixed):
    oid, element, size, code = 1000, 16, 1, "i?"


_DUMPERS: dict[type | None, type[ListDumper]] = {
    None: _Empty, str: _Texts, bytes: _Bytes, int: _Integers, float: _Floats, bool: _Bools,
}  # fmt: skip


@lru_cache(maxsize=2048)
def _packer(code: str, n: int) -> Callable[..., bytes]:
    return Struct(">" + code * n).pack
