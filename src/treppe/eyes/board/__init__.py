"""The board: what waits and how long, what needs a human, and the buttons for it. Needs the extra ``web``."""

from __future__ import annotations

from treppe.eyes.board.site import board

__all__ = ["board"]
