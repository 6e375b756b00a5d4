"""Text from outside on a screen: nothing invisible, nothing that breaks out of its line."""

import pytest

from treppe.eyes.plain import line, plain


@pytest.mark.parametrize(
    "sign", [*map(chr, range(9)), "\x0b", "\x1b", "\x7f", "\x85", "\x9b", "\u202e", "\u2066", "\u200f", "\ufeff"]
)
def test_signs_that_are_not_seen_are_spelled_out(sign):
    assert sign not in plain(f"a{sign}b")
    assert sign not in line(f"a{sign}b")
    assert plain(f"a{sign}b").startswith("a\\")


def test_other_alphabets_stay_as_they_are():
    text = "Größe 日本語 مرحبا 😀"
    assert plain(text) == line(text) == text


def test_lines_stay_lines_and_tabs_stay_tabs():
    assert plain("a\r\n\tb\nc") == "a\n\tb\nc"


def test_one_line_stays_one_line():
    assert line("Subject: x\r\nBcc: all@example.com\n\n") == "Subject: x Bcc: all@example.com"


def test_a_long_text_is_cut_visibly():
    assert line("x" * 1000, 10) == "xxxxxxxxx…"
