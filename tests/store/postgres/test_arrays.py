"""Arrays in our own binary encoding arrive as what they were."""

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.types.bool import BoolBinaryDumper
from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper
from psycopg.types.string import BytesBinaryDumper, StrBinaryDumper

from treppe.store.postgres.arrays import ListDumper

TYPES = {"bigint": [0, -1, 2**62], "double precision": [0.5, -1e300], "boolean": [True, False],
         "text": ["", "a", "ü€😀", 'q"u,o{t}e\\'], "bytea": [b"", b"\0\xff" * 1000]}  # fmt: skip


def adapters(lists=None):
    made = AdaptersMap(psycopg.adapters)
    for cls, dumper in ((int, Int8BinaryDumper), (float, FloatBinaryDumper), (str, StrBinaryDumper),
                        (bytes, BytesBinaryDumper), (bool, BoolBinaryDumper)):  # fmt: skip
        made.register_dumper(cls, dumper)
    if lists:
        made.register_dumper(list, lists)
    return made


class Context:
    connection = None

    def __init__(self, made):
        self.adapters = made


def dumped(value, lists=None):
    transformer = Transformer(Context(adapters(lists)))
    [data] = transformer.dump_sequence([value], [PyFormat.BINARY])
    return transformer.types, bytes(data)


KINDS = [
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text('aü€"{},\\\\'),
    st.binary(),
]


@given(
    st.sampled_from(KINDS).flatmap(
        lambda kind: st.tuples(st.lists(st.one_of(st.none(), kind)), kind).map(lambda some: [*some[0], some[1]])
    )
)
def test_they_are_what_the_driver_itself_would_send(values):
    assert dumped(values, ListDumper) == dumped(values)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shape", ["all", "some", "nulls", "none"])
def test_the_server_reads_them(kind, shape, postgres18):
    known = TYPES[kind]
    values = {"all": known, "some": [None, *known, None], "nulls": [None, None], "none": []}[shape]
    with psycopg.connect(postgres18.socket_url(), cursor_factory=psycopg.RawCursor) as connection:
        connection.adapters.register_dumper(list, ListDumper)
        [[read]] = connection.execute(f"SELECT $1::{kind}[]", (values,)).fetchall()
    assert read == values


def test_what_no_array_can_hold_is_refused_as_the_driver_refuses_it():
    with pytest.raises(psycopg.ProgrammingError, match="object"):
        dumped([object()], ListDumper)
