"""What is measured, in the order of the report; each module has a ``TITLE`` and ``run(scale, ground)``."""

from __future__ import annotations

import importlib
from typing import Protocol

from bench.figures import Measured, Scale
from bench.grounds import Ground

NAMES = {
    "sqlite": ("door", "end_to_end", "pick_up", "growth", "memory", "idle", "crash"),
    "postgres": ("door", "end_to_end", "pick_up", "growth", "snapshot", "memory", "idle", "crash"),
}
"""The measures of each store."""


class Measure(Protocol):
    """What a module here offers."""

    TITLE: str

    def run(self, scale: Scale, ground: Ground) -> Measured:
        """Measure it."""


def measure(name: str) -> Measure:
    """The measure of this name."""
    module: Measure = importlib.import_module(f"{__name__}.{name}")
    return module
