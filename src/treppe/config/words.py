"""Helping words: what somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str], nothing: str = "There is none yet") -> str:
    """A sentence that leads from a wrong word to the right one.

    >>> did_you_mean("lexwar", ["crm", "lexware"])
    'Did you mean "lexware"?'
    >>> did_you_mean("zzz", ["crm", "lexware"])
    'Known are: crm, lexware'
    """
    names = sorted(known)
    if close := closest(word, names):
        return f'Did you mean "{close}"?'
    more = ", …" if len(names) > 20 else ""
    return f"Known are: {', '.join(names[:20])}{more}" if names else nothing


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that looks most like this one, or None where nothing does.

    >>> closest("Rat", ["rate", "burst"])
    'rate'
    """
    found = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return found[0] if found else None
