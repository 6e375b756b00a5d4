"""The worker: claim → run → settle, the settle riding with the next claim. The flow is in ``engine``."""

from __future__ import annotations

from treppe.worker.engine import Worker
from treppe.worker.handler import Handler, Run
from treppe.worker.tally import Tally

__all__ = ["Handler", "Run", "Tally", "Worker"]
