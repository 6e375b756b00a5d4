"""Two languages, the same texts."""

import re
from importlib.resources import files
from string import Formatter

import pytest

from treppe.eyes.words import LANGUAGES, Words, catalogue
from treppe.job import Event, Kind, Repeat, State
from treppe.policy.pace import Why

SOURCES = [path for path in files("treppe.eyes").rglob("*") if path.suffix in (".py", ".html")]
GIVEN = re.compile(r"""(?:\bt|words)\(\s*["']([a-z_0-9.]+)["']\s*[,)]""")


def fields(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_have_the_same_texts():
    english, german = catalogue("en"), catalogue("de")
    assert english.keys() == german.keys()


@pytest.mark.parametrize("key", sorted(catalogue("en")))
def test_both_languages_say_the_same_values(key):
    assert fields(catalogue("en")[key]) == fields(catalogue("de")[key])


def test_the_german_texts_are_german():
    same = {key for key, text in catalogue("en").items() if text == catalogue("de")[key]}
    assert same <= {
        *("unit.seconds", "unit.minutes", "unit.hours", "unit.none", "unit.clock", "login.name"),
        *("alert.first", "nav.signed_in"),
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_that_is_asked_for_is_there(language):
    texts = catalogue(language)
    asked = {key for source in SOURCES for key in GIVEN.findall(source.read_text("utf-8"))}
    assert len(asked) > 60
    assert {key for key in asked if key not in texts and f"{key}.many" not in texts} == set()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("heading", "words"),
    [("state", State), ("state_says", State), ("event", Event), ("kind", Kind), ("repeat", Repeat), ("hold", Why)],
)
def test_every_word_of_the_machine_has_a_text(language, heading, words):
    assert {f"{heading}.{word}" for word in words} <= catalogue(language).keys()


def test_an_unknown_text_is_a_mistake_of_the_program():
    with pytest.raises(KeyError):
        Words("en")("nav.nowhere")


def test_a_language_nobody_wrote_is_english():
    assert Words("fr")("nav.jobs") == "Jobs"


def test_values_from_outside_cannot_reach_into_a_text():
    assert Words("en")("why.behind", id="{0.__class__} {n}") == (
        "It waits behind {0.__class__} {n}, which has the same order key."
    )


def test_a_share_is_written_as_people_do():
    assert (Words("de").share(0.125), Words("en").share(1.0)) == ("12 %", "100 %")


def test_times_are_written_in_the_zone_of_this_machine(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert Words("de").moment(1_780_000_000) == "28.05.2026 22:26:40 CEST"
        assert Words("en").moment(1_780_000_000) == "2026-05-28 22:26:40 CEST"
        assert (Words("en").clock(1_780_000_000), Words("en").moment(None)) == ("22:26:40", "–")
    finally:
        monkeypatch.undo()
        time.tzset()
