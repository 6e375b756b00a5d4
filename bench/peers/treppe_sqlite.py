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
        "threads": Variant("Treppe on SQLite, plain tasks", f"{_DEFAULTS}: 10 threads", durable=True),
        "async": Variant("Treppe on SQLite, async tasks", f"{_DEFAULTS}: 100 async jobs in one loop", durable=True),
    }

    @staticmethod
    def url_of(folder: Path) -> str:
        """One file in the folder."""
        return f"sqlite:///{folder / 'treppe.db'}"
