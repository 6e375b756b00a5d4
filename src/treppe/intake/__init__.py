"""The one way in: the door, Python tasks and schedules all come through here.

:class:`Intake` is for threads; :class:`Batcher` is for an event loop and lets concurrent callers share one commit.
"""

from treppe.intake.batcher import Batcher
from treppe.intake.ids import new_id
from treppe.intake.putting import MAX_PAYLOAD, MAX_PUT, Intake, delivery_settings, raise_conflicts

__all__ = ["MAX_PAYLOAD", "MAX_PUT", "Batcher", "Intake", "delivery_settings", "new_id", "raise_conflicts"]
