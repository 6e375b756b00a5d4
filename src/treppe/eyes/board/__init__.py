"""The board: what waits and how long, what needs a human, and the buttons for it. Needs the extra ``web``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from treppe.config import Settings
from treppe.eyes.measure import Figures
from treppe.store.protocol import Store

if TYPE_CHECKING:
    from starlette.applications import Starlette


def board(
    store: Store,
    settings: Settings,
    figures: Figures,
    language: str | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> Starlette:
    """The board on *store*, an ASGI application to be mounted at any prefix; closed until *settings* name a user.

    ``language`` is that of the settings if none is given; visitors may switch. ``clock`` is for sessions.
    """
    from treppe.eyes.board.desk import Desk
    from treppe.eyes.board.site import site

    return site(Desk(store, settings, figures, language or settings.language, clock))
