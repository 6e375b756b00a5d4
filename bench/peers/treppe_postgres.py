"""Treppe on PostgreSQL, fenced, with history."""

from __future__ import annotations

from typing import ClassVar

from bench.ours import TreppePeer
from bench.peers import Variant

_DEFAULTS = "bulk of 10,000; history kept; one worker as `treppe work` starts it, everything at its defaults"


class Peer(TreppePeer):
    """Treppe in one database."""

    store = "PostgreSQL"
    packages = ("treppe", "msgspec", "psycopg")
    variants: ClassVar = {
        "threads": Variant("Treppe on PostgreSQL, plain tasks", f"{_DEFAULTS}: 10 threads"),
        "async": Variant("Treppe on PostgreSQL, async tasks", f"{_DEFAULTS}: 100 async jobs in one loop"),
    }
    open = "SELECT EXISTS (SELECT FROM treppe.live)"
