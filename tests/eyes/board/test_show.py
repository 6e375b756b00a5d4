"""What is shown of payloads and answers: exact, bounded, without secrets."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.eyes.board import show

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('xyz{}[],:"\\ ', max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "number", ["12345678901234567890123", "1.10", "-0.0", "1E400", "0.1000000000000000055511151231257827", "1e-7"]
)
def test_no_digit_of_a_number_changes(number):
    assert f'"id": {number}\n' in show.payload(f'{{"id":{number}}}'.encode()).text


@given(VALUES)
def test_indenting_changes_nothing_but_the_space_between(value):
    shown = show.payload(json.dumps({"v": value}).encode())
    assert json.loads(shown.text) == {"v": value}
    assert not shown.cut
    assert not shown.odd


def test_text_in_strings_stays_as_it_was_written():
    body = rb'{"a":"x, y: {z} [\"] \u0041 \\","b":{},"c":[]}'
    assert show.payload(body).text == '{\n  "a": "x, y: {z} [\\"] \\u0041 \\\\",\n  "b": {},\n  "c": []\n}'


@pytest.mark.parametrize("body", [b"", b"hello", b"{", b'{"a":}', b"null", b"{'a': 1}", b"[1,2", b"\xef\xbb\xbf{}"])
def test_what_is_not_json_is_shown_as_it_came(body):
    assert show.payload(body).text == body.decode().replace("\ufeff", "\\ufeff")


def test_bytes_that_are_no_text_are_spelled_out():
    shown = show.payload(b"a\xff\x00b")
    assert (shown.text, shown.odd) == ("a\\xff\\x00b", True)


@pytest.mark.parametrize("body", [b"x" * 200_000, b'{"a": "' + b"x" * 200_000 + b'"}', b"[" * 200_000])
def test_a_huge_payload_is_cut(body):
    shown = show.payload(body)
    assert (shown.cut, shown.size) == (True, len(body))
    assert len(shown.text) <= 4 * show.MOST


@pytest.mark.parametrize(
    "body", [b"[" * 60_000 + b"]" * 5_000, b'[[[["' * 13_000, b'"\\' * 32_000, b"{" + b'"a":{' * 10_000, b"," * 65_000]
)
def test_no_payload_takes_long_or_grows_without_end(body):
    started = time.perf_counter()
    shown = show.payload(body)
    assert len(shown.text) <= 4 * show.MOST
    assert time.perf_counter() - started < 2


def test_a_cut_in_the_middle_of_a_letter_is_no_fault_of_the_text():
    shown = show.payload(b"x" * (show.MOST - 1) + "é".encode() + b"y")
    assert shown.cut
    assert not shown.odd


@pytest.mark.parametrize(
    "name", ["password", "API_KEY", "api-key", "clientSecret", "access_token", "Authorization", "set-cookie", "auth"]
)
@pytest.mark.parametrize("value", ['"canary"', "4711", '{"a":["canary",{}]}', '["canary"]', "null"])
def test_the_value_behind_the_name_of_a_secret_is_hidden(name, value):
    text = show.payload(f'{{"{name}":{value},"order":1}}'.encode()).text
    assert text == f'{{\n  "{name}": •••,\n  "order": 1\n}}'


def test_secrets_stay_hidden_where_the_payload_is_cut():
    body = b'{"password": ["' + b"canary " * 20_000 + b'"]}'
    assert "canary" not in show.payload(body).text


def test_secrets_in_forms_are_hidden():
    shown = show.payload(b"user=anna&password=canary&x=1", "application/x-www-form-urlencoded; charset=utf-8")
    assert shown.text == "user=anna&password=•••&x=1"


def test_headers_are_shown_without_secrets():
    pairs = [("Content-Type", "text/plain"), ("X-Api-Key", "canary"), ("Cookie", "canary"), ("X-A", "b\x1b[31m")]
    assert show.headers(pairs) == [
        ("Content-Type", "text/plain"),
        ("X-Api-Key", "•••"),
        ("Cookie", "•••"),
        ("X-A", "b\\x1b[31m"),
    ]


def test_an_answer_is_taken_apart():
    content = {"status": 422, "headers": [["Set-Cookie", "canary"], ["X-A", "b"]], "answer": '{"token":"canary"}'}
    assert show.detail(json.dumps(content).encode()) == [
        ("status", "422"),
        ("headers.Set-Cookie", "•••"),
        ("headers.X-A", "b"),
        ("answer", '{\n  "token": •••\n}'),
    ]


@pytest.mark.parametrize(("content", "text"), [(b"not json", "not json"), (b"[" * 100_000, "[" * show.MOST)])
def test_a_detail_that_is_not_json_is_shown_as_it_is(content, text):
    assert show.detail(content) == [("", text)]


def test_no_detail_is_no_detail():
    assert show.detail(None) == show.detail(b"") == []
