"""The test of a source's ``where``: which events make jobs."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.door.arrival import Arrival, Headers
from treppe.door.where import condition
from treppe.errors import ConfigError

ORDER = (
    b'{"total": 199, "price": "199.00", "status": "paid", "test": false, "paid": true, "gone": null, "none": "",'
    b' "zero": 0, "zeros": "0.00", "tags": [], "items": [{"qty": 3}], "id": 12345678901234567890,'
    b' "n": 1e999999999999999999999}'
)


def holds(text, body=ORDER):
    return condition(text, "source.shop.where")(Arrival(Headers([(b"x-env", b"live"), (b"x-n", b"5")]), body))


@pytest.mark.parametrize(
    "text",
    [
        "body:total > 0",
        "body:total>0",
        "  body:total   >=   199  ",
        "body:total <= 199",
        "body:total < 199.01",
        "body:price > 0",
        "body:price == 199",
        "body:price == 199.0",
        "body:total == 1.99e2",
        "body:zeros == 0",
        "body:id > 12345678901234567889",
        "body:id == 12345678901234567890",
        'body:status == "paid"',
        "body:status == 'paid'",
        'body:status != "open"',
        'body:absent != "open"',
        'body:status != ""',
        'body:none == ""',
        "body:test == false",
        "body:paid == true",
        "body:gone == null",
        "body:absent == null",
        "body:status != null",
        "body:paid",
        "body:status",
        "body:total",
        "body:zeros",
        "body:items",
        "body:items[0].qty >= 3",
        'header:X-Env == "live"',
        "header:X-N > 4",
        "header:X-Env",
        'body:status == "paid"  ',
    ],
)
def test_it_holds(text):
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "body:total > 199",
        "body:total < 0",
        "body:status > 0",
        "body:tags > 0",
        "body:absent > 0",
        "body:gone > 0",
        "body:paid > 0",
        "body:n > 0",
        "body:n < 0",
        "body:n == 1",
        "body:id == 12345678901234567891",
        'body:total == "199"',
        'body:status == "Paid"',
        "body:paid == 1",
        'body:paid == "true"',
        'body:test == ""',
        "body:zero == false",
        "body:status == null",
        "body:gone != null",
        "body:test",
        "body:gone",
        "body:none",
        "body:zero",
        "body:tags",
        "body:absent",
        "header:X-Absent",
        'header:X-Env != "live"',
    ],
)
def test_it_does_not_hold(text):
    assert not holds(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "total > 0", "body:total >", "body:total > 'x'", "body:total => 0", "body:total = 0",
     "body:status == paid", "body:a == 1 and body:b == 2", "body:a > 0x10", "body:a > ١", "body:a == 'it's'",
     "body:a > null", "> 0", "body: > 0", "body:a == NaN", "not body:a", "body:a == 'x' or body:b"],
)  # fmt: skip
def test_a_test_that_cannot_be_read_is_said_with_the_cure(text):
    with pytest.raises(ConfigError, match=r"^source\.shop\.where: ") as error:
        condition(text, "source.shop.where")
    assert error.value.cure


def test_a_body_that_is_not_json_satisfies_nothing_that_needs_it():
    assert not holds("body:total > 0", b"total=5")
    assert not holds("body:total", b"\xff")
    assert holds("header:X-Env", b"\xff")


@given(st.binary(), st.sampled_from(["body:a", "body:a > 0", 'body:a == "x"', "body:a[0].b != 5", "header:X-Env <= 1"]))
def test_no_body_brings_it_down(body, text):
    assert holds(text, body) in (True, False)


@given(st.text(alphabet="body:header. []0123456789=<>!'\"ax-", max_size=40) | st.text(max_size=40))
def test_no_text_brings_the_reader_down(text):
    with suppress(ConfigError):
        condition(text, "where")
