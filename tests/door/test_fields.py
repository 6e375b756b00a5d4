"""Paths into headers and bodies, and texts that fit every store."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.door.arrival import Arrival, Headers
from treppe.door.fields import field, first_of, fitting, joined
from treppe.errors import ConfigError
from treppe.intake import Intake
from treppe.job import NewJob

BODY = (
    b'{"id": 42, "customer": {"id": 900719925474099312345, "name": ""},'
    b' "items": [{"sku": "A"}, {"sku": "B:1"}], "ok": false}'
)


def take(path, body=BODY, *headers):
    return field(path, "source.shop.id")(Arrival(Headers(list(headers)), body))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("body:id", "42"),
        ("body:customer.id", "900719925474099312345"),
        ("body:items[1].sku", "B:1"),
        ("body:ok", "false"),
        ("body:customer", None),
        ("body:items", None),
        ("body:customer.name", None),
        ("body:items[2].sku", None),
        ("body:items.sku", None),
        ("body:id[0]", None),
        ("body:nothing.at.all", None),
        ("body-hash", hashlib.sha256(BODY).hexdigest()),
        ("header:X-Id", None),
    ],
)
def test_a_path_finds_a_scalar_or_nothing(path, found):
    assert take(path) == found


@pytest.mark.parametrize("body", [b"", b"[]", b'"text"', b"null", b"\xff\xfe", b"[[1]]", b'{"customer": [1]}'])
def test_a_body_of_another_shape_has_nothing_there(body):
    assert take("body:customer.id", body) is None


def test_the_body_itself_may_be_a_list():
    assert take("body:[0].id", b'[{"id": 7}]') == "7"


def test_headers_are_found_whatever_their_case():
    assert take("header:X-Shop-ID", b"", (b"x-shop-id", b"7")) == "7"


@pytest.mark.parametrize("headers", [[], [(b"x-id", b"")], [(b"x-id", b"1"), (b"x-id", b"2")]])
def test_a_header_that_is_absent_empty_or_repeated_gives_nothing(headers):
    assert take("header:X-Id", b"", *headers) is None


@pytest.mark.parametrize(
    "path",
    ["", "id", "body:", "body:a..b", "body:a[", "body:a[x]", "body:a[-1]", "body:.a", "body:a b", "header:",
     "header:a b", "header:a\nb", "headers:x", "body-hash:x", "body:a[1234567]", "body:a[٣]", "json:a"],
)  # fmt: skip
def test_a_path_that_cannot_be_read_is_said_with_the_cure(path):
    with pytest.raises(ConfigError) as error:
        field(path, "source.shop.key")
    assert str(error.value).startswith("source.shop.key: ")
    assert 'Write "header:X-Name", "body:customer.id"' in str(error.value)


def test_several_paths_make_one_text():
    take_all = joined(["body:id", "header:X-Topic"], "id")
    assert take_all(Arrival(Headers([(b"x-topic", b"paid")]), BODY)) == "42:paid"
    assert take_all(Arrival(Headers([]), BODY)) is None


def test_two_lists_of_parts_never_look_alike():
    both = joined(["header:a", "header:b"], "id")

    def text(a, b):
        return both(Arrival(Headers([(b"a", a), (b"b", b)]), b""))

    assert text(b"x:y", b"z") != text(b"x", b"y:z")
    assert text(b"x%3Ay", b"z") != text(b"x:y", b"z")


@given(st.tuples(st.binary(min_size=1), st.binary(min_size=1)), st.tuples(st.binary(min_size=1), st.binary(min_size=1)))
def test_joined_texts_are_equal_only_for_equal_parts(one, other):
    both = joined(["header:a", "header:b"], "id")
    texts = [both(Arrival(Headers([(b"a", a), (b"b", b)]), b"")) for a, b in (one, other)]
    assert (texts[0] == texts[1]) == (one == other)


def test_the_first_complete_choice_wins():
    choice = first_of([field("header:a", "id"), field("header:b", "id")])
    assert choice(Arrival(Headers([(b"b", b"2"), (b"a", b"1")]), b"")) == "1"
    assert choice(Arrival(Headers([(b"b", b"2")]), b"")) == "2"
    assert choice(Arrival(Headers([]), b"")) is None


@given(st.text(min_size=1))
def test_every_text_fits_and_keeps_its_identity(text):
    fitted = fitting(text)
    Intake(None).check([NewJob(fitted, "t", "q", key=fitted)])
    assert fitting(text) == fitted
    assert fitting(text + "x") != fitted


def test_texts_that_fit_are_left_alone():
    for text in ("order:42", "Bestellung Nº 7 – «ä»", "x" * 255, "a\u00a0b", "日本語"):
        assert fitting(text) == text


def test_long_texts_keep_their_beginning_and_get_a_hash():
    assert fitting("shop:" + "x" * 300).startswith("shop:xxx")
    assert len(fitting("x" * 300)) == 255
    assert fitting("x" * 300) != fitting("x" * 301)
    assert fitting("a\x00b").startswith("ab~")
