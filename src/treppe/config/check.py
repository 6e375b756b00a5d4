"""Judges settings that could be read: will they work, and do they promise what their author thinks?

An *error* keeps Treppe from starting, a *warning* is most likely a mistake, a *hint* explains a consequence.
Nothing is changed and nothing is called over the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from treppe.config import Settings
from treppe.config.finding import Finding
from treppe.config.rules import destinations, people, secrets, sources, store


class Keeps(Protocol):
    """The part of what a store can that settings depend on."""

    @property
    def survives_power_loss(self) -> bool:
        """True when what was answered as accepted outlives a power cut."""

    @property
    def durability(self) -> str:
        """One sentence for people."""


def check(settings: Settings, store_can: Keeps | None = None) -> list[Finding]:
    """All findings, errors first. *store_can* is what the opened store says of itself, where it is open already.

    >>> [str(finding) for finding in check(Settings("redis://localhost"))][0]
    'store: not available in this version: Redis as the store. Use store = "sqlite:///treppe.db" until then'
    """
    findings = [finding for rule in _RULES for finding in rule(settings)]
    if store_can and settings.sources and not store_can.survives_power_loss:
        text = f"an accepted webhook can be lost when the power fails ({store_can.durability})"
        findings.append(Finding("warning", "store", text, "Choose a store that writes to disk before it answers"))
    return sorted(findings, key=lambda finding: _ORDER[finding.level])


_ORDER: Final = {"error": 0, "warning": 1, "hint": 2}
_RULES: Final[tuple[Callable[[Settings], Iterator[Finding]], ...]] = (
    store.findings,
    secrets.findings,
    sources.findings,
    destinations.findings,
    people.findings,
)
