"""Which of uvicorn's HTTP protocols serves, and who watches it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal

from treppe.door.answers import Take
from treppe.door.watched import Keeper, Watched


def protocol(
    keeper: Keeper,
    parser: Literal["auto", "httptools", "h11"] = "auto",
    shortcuts: Mapping[bytes, Take] | None = None,
) -> type[asyncio.Protocol]:
    """uvicorn's protocol for httptools if that is installed, else for h11, watched by *keeper*.

    ``shortcuts`` takes requests by their path; only httptools knows that way.
    """
    if parser == "httptools" or (parser == "auto" and find_spec("httptools")):
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

        from treppe.door.httptools import WatchedHttpTools

        own = {"keeper": keeper, "shortcuts": shortcuts or {}}
        return type("Protocol", (WatchedHttpTools, HttpToolsProtocol), own)
    from uvicorn.protocols.http.h11_impl import H11Protocol

    return type("Protocol", (Watched, H11Protocol), {"keeper": keeper})
