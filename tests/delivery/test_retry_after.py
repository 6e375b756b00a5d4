"""Retry-After: every spelling that has fooled a client somewhere."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.delivery.retry_after import LONGEST, wait_asked

NOW = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT


def asked(value: str) -> float | None:
    return wait_asked([("Retry-After", value)], NOW)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7\t", 7.0),
        ("007", 7.0),
        ("86400", 86400.0),
        ("86401", LONGEST),
        ("999999999", LONGEST),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0),
        ("Sun Nov  6 08:50:37 1994", 60.0),
        ("Sun, 06 Nov 1994 09:50:37 +0100", 60.0),
        ("Sun, 06 Nov 1994 08:50:37 -0000", 60.0),
        ("Sun, 06 Nov 1994 08:49:36 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST),
    ],
)
def test_seconds_and_the_three_forms_of_a_date_are_read(value, seconds):
    assert asked(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "+5", "-5", "1_000", "١٢", "１２", "1000abc", "1e3", "5.0", "0x10", "1234567890", "12\n", "5, 10"),
        *("soon", "NaN", "inf", "2031-01-01T00:00:00Z", "1994!", "6 Nov 1994", "Sun, 06 Nov 1994", "08:49:37"),
        *("Sun, 06 Nov 99999 08:49:37 GMT", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:61:61 GMT"),
        *("Fri, 31 Dec 1999 23:59:59 GMT" + "," * 64, "9" * 5000),
    ],
)
def test_what_cannot_be_read_is_as_if_absent(value):
    assert asked(value) is None


def test_no_header_asks_for_nothing():
    assert wait_asked([], NOW) is None
    assert wait_asked([("Date", formatdate(NOW, usegmt=True))], NOW) is None


def test_the_name_of_the_header_is_read_in_any_case():
    assert wait_asked([("rETRY-aFTER", "3")], NOW) == 3.0


def test_of_several_the_longest_readable_one_counts():
    assert wait_asked([("Retry-After", "3"), ("Retry-After", "30"), ("Retry-After", "soon")], NOW) == 30.0


def test_a_date_is_counted_from_the_clock_of_the_target_when_it_tells_it():
    ahead = NOW + 600
    headers = [("Date", formatdate(ahead, usegmt=True)), ("Retry-After", formatdate(ahead + 20, usegmt=True))]
    assert wait_asked(headers, NOW) == 20.0


def test_a_date_of_the_target_that_cannot_be_read_leaves_our_own_clock():
    assert wait_asked([("Date", "today"), ("Retry-After", formatdate(NOW + 20, usegmt=True))], NOW) == 20.0


@given(
    st.text(max_size=100) | st.from_regex(r"[A-Za-z]{3,9},? [0-9A-Za-z :+-]{1,40}", fullmatch=True), st.floats(0, 1e10)
)
def test_any_text_gives_a_bounded_wait_or_none(value, now):
    wait = wait_asked([("Retry-After", value)], now)
    assert wait is None or 0.0 <= wait <= LONGEST
