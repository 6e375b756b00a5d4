"""All themes of the contract as one class."""

from __future__ import annotations

from treppe.testing.contract.acts import Acts
from treppe.testing.contract.claiming import Claiming
from treppe.testing.contract.concurrency import Concurrency
from treppe.testing.contract.crowds import Crowds
from treppe.testing.contract.events import Events
from treppe.testing.contract.fairness import Fairness
from treppe.testing.contract.fencing import Fencing
from treppe.testing.contract.figures import Figures
from treppe.testing.contract.finding import Finding
from treppe.testing.contract.health import Health
from treppe.testing.contract.journals import Journals
from treppe.testing.contract.keys import Keys
from treppe.testing.contract.lapses import Lapses
from treppe.testing.contract.late import Late
from treppe.testing.contract.lives import Lives
from treppe.testing.contract.paced import Paced
from treppe.testing.contract.pacing import Pacing
from treppe.testing.contract.processes import Processes
from treppe.testing.contract.putting import Putting
from treppe.testing.contract.reopening import Reopening
from treppe.testing.contract.settling import Settling
from treppe.testing.contract.slots import Slots
from treppe.testing.contract.states import States
from treppe.testing.contract.upkeep import Upkeep
from treppe.testing.contract.within import Within

THEMES = (
    Putting,
    Events,
    Claiming,
    Crowds,
    Fairness,
    Fencing,
    Keys,
    Slots,
    Pacing,
    Paced,
    Health,
    Lapses,
    Late,
    Settling,
    Acts,
    Upkeep,
    Finding,
    Figures,
    Journals,
    States,
    Lives,
    Concurrency,
    Processes,
    Reopening,
    Within,
)


class StoreContract(*THEMES):  # type: ignore[misc]
    """All themes together: subclass it for a store of yours."""
