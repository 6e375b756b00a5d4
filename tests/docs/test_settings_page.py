"""docs/settings.md against the grammar: no key is missing, none is invented, and every default is the real one."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.docs.pages import ROOT, tables
from treppe import config
from treppe.config.grammar import grammar
from treppe.config.shape import Named, Shape

PAGE = (ROOT / "docs" / "settings.md").read_text("utf-8")
HEADING = re.compile(r"^##+ (.+)$", re.MULTILINE)
SECTIONS = dict(zip(HEADING.split(PAGE)[1::2], HEADING.split(PAGE)[2::2], strict=True))
HEADINGS = {
    "": "At the top",
    "queue": "`[queue.NAME]`: the unit of pace",
    "source": "`[source.NAME]`: a door for one sender's webhooks",
    "destination": "`[destination.NAME]`: a web address that jobs are delivered to",
    "alert": "`[alert.NAME]`: whom to tell what",
    "user": "`[user.NAME]`: who may log in to the board",
    "web": "`[web]`: where `treppe up` listens",
}
STRUCTS = {
    "": config.Settings,
    "queue": config.Queue,
    "source": config.Source,
    "verify": config.Verify,
    "destination": config.Destination,
    "auth": config.Auth,
    "probe": config.Probe,
    "backoff": config.Backoff,
    "alert": config.Alert,
    "user": config.User,
    "web": config.Web,
}
NOT_SET = "–"
NOTHING = (None, (), "", msgspec.NODEFAULT)
INHERITED = {("source", "keep")}
"""The reader gives it the value at the top; the default of the struct is for settings made in Python."""


def shapes(shape: Shape, name: str = "") -> Iterator[tuple[str, Shape]]:
    """Every table there is, with the last part of its name. One of a single line stands with its parent."""
    yield name, shape
    for key, rule in shape.keys.items():
        below = rule.shape if isinstance(rule, Named) else rule
        if isinstance(below, Shape) and key in {*HEADINGS, *STRUCTS}:
            yield from shapes(below, key)


SHAPES = dict(shapes(grammar(Path("/"))))


def rows(name: str) -> dict[str, str]:
    """Key and default, as the page tells them."""
    section = SECTIONS[HEADINGS.get(name, f"`{name}`")]
    return {key.strip("`"): default for key, default, _ in tables(section)[0][1:]}


def test_every_table_is_looked_at():
    assert set(SHAPES) == set(STRUCTS)


@pytest.mark.parametrize("name", SHAPES, ids=lambda name: name or "top")
def test_no_key_is_missing_and_none_is_invented(name):
    keys = {key for key, rule in SHAPES[name].keys.items() if not (isinstance(rule, Named) or key == "web")}
    assert set(rows(name)) == keys


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name in SHAPES for key in rows(name)], ids=lambda text: text or "top"
)
def test_every_default_is_the_real_one(name, key):
    told, rule = rows(name)[key], SHAPES[name].keys[key]
    field = SHAPES[name].fields.get(key, key)
    real = default_of(STRUCTS[name], field)
    if told == NOT_SET:
        assert real in NOTHING or isinstance(real, msgspec.Struct) or (name, key) in INHERITED
        return
    value = tomllib.loads(f"it = {told.strip('`')}")["it"]
    assert not isinstance(rule, Shape | Named)
    made = rule(value)
    assert made == real or (key == "store" and made.endswith(str(real).rpartition("/")[2]))


@pytest.mark.parametrize("name", SHAPES, ids=lambda name: name or "top")
def test_what_must_be_there_is_called_required(name):
    section = SECTIONS[HEADINGS.get(name, f"`{name}`")]
    required = {key.strip("`") for key, _, meaning in tables(section)[0][1:] if "; required" in meaning}
    assert required - {"to"} == set(SHAPES[name].required)


def default_of(struct: type[msgspec.Struct], field: str) -> Any:
    found = {each.name: each for each in msgspec.structs.fields(struct)}[field]
    if found.default_factory is not msgspec.NODEFAULT:
        return found.default_factory()
    return found.default
