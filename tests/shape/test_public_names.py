"""The public names are a promise: one that comes or goes is a decision, written into public_names.txt."""

import inspect
from pathlib import Path

import treppe

PINNED = (Path(__file__).parent / "public_names.txt").read_text().split()


def test_public_names_are_the_pinned_ones():
    assert list(treppe.__all__) == PINNED


def test_public_names_are_sorted_and_unique():
    assert sorted(set(PINNED)) == PINNED


def test_every_public_name_exists():
    assert [name for name in PINNED if not hasattr(treppe, name)] == []


def test_every_public_class_and_function_says_what_it_does():
    public = {name: getattr(treppe, name) for name in PINNED}
    silent = [name for name, thing in public.items() if is_code(thing) and not inspect.getdoc(thing)]
    assert silent == []


def is_code(thing: object) -> bool:
    return inspect.isclass(thing) or inspect.isroutine(thing)
