"""Looking into what came: headers that come twice, and JSON that is meant to hurt."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.door.arrival import ABSENT, Arrival, Headers, Number, is_deeper_than, look_into


def arrival(body, *headers):
    return Arrival(Headers(list(headers)), body)


def test_a_header_that_comes_once_is_found():
    headers = Headers([(b"x-id", b"7"), (b"host", b"a")])
    assert (headers.get(b"x-id"), headers.only(b"x-id"), headers.repeats(b"x-id")) == (b"7", b"7", False)


def test_a_header_that_comes_twice_is_never_trusted_and_leaves_the_others_alone():
    headers = Headers([(b"x-id", b"7"), (b"host", b"a"), (b"x-id", b"7")])
    assert (headers.only(b"x-id"), headers.repeats(b"x-id")) == (None, True)
    assert (headers.only(b"host"), headers.only(b"absent")) == (b"a", None)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": 1}', {"a": "1"}),
        (b"[1, 2]", ["1", "2"]),
        (b'"text"', "text"),
        (b"null", None),
        (b"true", True),
        (b'{"id": 12345678901234567890123}', {"id": "12345678901234567890123"}),
        (b'{"total": 10.10}', {"total": "10.10"}),
        (b'{"n": 1e999}', {"n": "1e999"}),
        (b'{"n": -0}', {"n": "-0"}),
        (b'{"nul": "\\u0000"}', {"nul": "\x00"}),
        (b'{"lone": "\\ud800"}', {"lone": "\ud800"}),
        (b'{"n": ' + b"9" * 5000 + b"}", {"n": "9" * 5000}),
    ],
)
def test_json_is_read_without_changing_numbers(body, value):
    assert look_into(body) == (value, "")


def test_numbers_are_known_as_numbers():
    value, _ = look_into(b'{"number": 1.5, "text": "1.5"}')
    assert isinstance(value["number"], Number)
    assert not isinstance(value["text"], Number)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"NaN",
        b'{"a": Infinity}',
        b"-Infinity",
        b"id=tr_1",
        b"\xef\xbb\xbf{}",
        b'"\xff"',
        '{"a": 1}'.encode("utf-16"),
        b'{"a": 1} {"b": 2}',
        b"\x00",
    ],
)
def test_what_is_not_json_is_said_to_be_none(body):
    assert look_into(body) == (ABSENT, "the body is not JSON")


def test_of_keys_that_stand_twice_the_last_counts_and_it_is_said():
    assert look_into(b'{"a": {"b": 1, "b": 2}}') == ({"a": {"b": "2"}}, "a key stands twice in one object")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":[', b'{"x":"]","a":'])
def test_nesting_of_a_hundred_thousand_is_not_read(opening):
    closing = opening.replace(b"[", b"]").replace(b"{", b"}")
    closing = bytes(reversed(closing.translate(None, b'"a:x,')))
    assert look_into(opening * 100_000 + b"1" + closing * 100_000)[0] is ABSENT
    assert "nested more than 64 deep" in look_into(opening * 100_000)[1]


def test_nesting_of_64_is_read_and_of_65_is_not():
    assert look_into(b"[" * 64 + b"]" * 64)[0] is not ABSENT
    assert look_into(b"[" * 65 + b"]" * 65) == (ABSENT, "the body is nested more than 64 deep")


def test_brackets_in_texts_do_not_count():
    body = json.dumps([r"[{" * 200, '"[' * 200, "\\" * 7 + "[" * 99, '\\"[[' * 70]).encode()
    assert not is_deeper_than(1, body)


values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\a', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def depth_of(value):
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 1 + max(map(depth_of, value.values()), default=0) if isinstance(value, dict) else 0


@given(values, st.integers(0, 6))
def test_depth_is_counted_exactly_for_json(value, depth):
    assert is_deeper_than(depth, json.dumps(value).encode()) <= (depth_of(value) > depth)
    padded = [value, *[[]] * depth]  # enough brackets that the short cut is not taken
    assert is_deeper_than(depth, json.dumps(padded).encode()) == (depth_of(padded) > depth)


@given(st.binary() | st.text(alphabet='[]{}":,\\ 1a').map(str.encode))
def test_no_body_brings_it_down(body):
    value, trouble = look_into(body)
    assert (value is ABSENT) <= bool(trouble)


def test_a_compressed_body_is_not_looked_into():
    came = arrival(b"\x1f\x8b", (b"content-encoding", b"gzip"))
    assert came.json is ABSENT
    assert came.trouble_seen == "the body is compressed"
    assert arrival(b"1", (b"content-encoding", b"Identity")).json == "1"


def test_trouble_is_only_told_to_those_who_looked():
    came = arrival(b"not json")
    assert came.trouble_seen == ""
    assert came.json is ABSENT
    assert came.trouble_seen == "the body is not JSON"
