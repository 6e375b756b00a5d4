import io
import re

import pytest

from treppe.demo.screen import NO_WRAP, Paint, Screen
from treppe.eyes.measure import QueueFigures, Summary

ARRIVED = {"crm": 5, "accounting": 2}
NOW = Summary(
    at=100.0,
    age_s=0.0,
    open=1234,
    oldest_age_s=7.6,
    accepted=40,
    done=7,
    dead=2,
    unclear=1,
    queues=(
        QueueFigures(
            "accounting",
            waiting=1200,
            behind=20,
            running=10,
            retrying=3,
            unclear=1,
            held=True,
            why="throttled",
            openness=0.75,
        ),
        QueueFigures("crm", dead=2),
    ),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_moments_are_lines():
    out = io.StringIO()
    screen = Screen(out)
    screen.say("the CRM is down")
    screen.show(10, ARRIVED, NOW)
    screen.show(11, ARRIVED, NOW)
    first, second = out.getvalue().splitlines()
    assert first.endswith("s  the CRM is down")
    assert "accepted 10  crm 5  accounting 2  open 1,234, oldest 8 s  (accounting held: throttled)" in second


def test_on_a_terminal_the_block_is_drawn_over():
    out = Terminal()
    screen = Screen(out)
    screen.say("the CRM is down")
    assert out.getvalue() == ""
    screen.show(10, ARRIVED, NOW)
    drawn = out.getvalue()
    height = drawn.count("\n")
    assert drawn.startswith(NO_WRAP)
    for words in (
        "accepted 10 orders",
        "1,234 jobs open",
        "1,200 waiting",
        "20 behind their customer",
        "3 to try again",
    ):
        assert words in drawn
    for words in ("1 unclear", "75 % open", "held: throttled", "2 dead", "the CRM is down"):
        assert words in drawn
    screen.show(11, ARRIVED, NOW)
    assert out.getvalue()[len(drawn) :].startswith(f"{NO_WRAP}\x1b[{height}F")


def test_what_is_printed_stays():
    out = Terminal()
    screen = Screen(out)
    screen.show(10, ARRIVED, NOW)
    screen.print("kept")
    length = len(out.getvalue())
    screen.show(11, ARRIVED, NOW)
    assert re.match(r"\x1b\[\?7l\x1b\[\d+F", out.getvalue()[length:]) is None


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_are_left_out_where_nobody_wants_them(monkeypatch: pytest.MonkeyPatch, variable: str, value: str):
    monkeypatch.setenv(variable, value)
    assert Screen(Terminal()).paint.red("BROKEN") == "BROKEN"


def test_colours_are_codes_around_the_text():
    paint = Paint(True)
    painted = [paint.bold("a"), paint.green("b"), paint.red("c"), paint.yellow("d"), paint.dim("e")]
    assert all(text.startswith("\x1b[") and text.endswith("\x1b[0m") for text in painted)
