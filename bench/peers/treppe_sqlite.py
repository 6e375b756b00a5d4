"""Treppe on SQLite, durable, with history."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from bench.ours import TreppePeer
from bench.peers import Variant

_DEFAULTS = "synchronous=FULL, WAL, history kept; one worker as `treppe work` starts it, everything at its defaults"


class Peer(TreppePeer):
    """Treppe on one SQLite file."""

    store = "SQLite"
    variants: ClassVar = {
        "threads": Variant("Treppe on SQLite, plain tasks", f"{_DEFAULTS}: 10 threads"),
        "async": Variant("Treppe on SQLite, async tasks", f"{_DEFAULTS}: 100 async jobs in one loop"),
    }

    @staticmethod
    def url_of(place: str) -> str:
        """One file in the folder."""
        return f"sqlite:///{Path(place) / 'treppe.db'}"
