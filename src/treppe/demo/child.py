"""What the demo's own processes share: free ports, their orders for the day, and the end when the parent wants it."""

from __future__ import annotations

import asyncio
import random
import socket
import sys
from pathlib import Path

import msgspec

from treppe.demo.friday import Day
from treppe.demo.wire import HOST

BELOW_EPHEMERAL = range(18_000, 32_000)
"""Neither Linux nor macOS picks local ports of outgoing connections from here."""


def free_port() -> int:
    """A port that is free now and that no outgoing connection will be given.

    >>> free_port() in BELOW_EPHEMERAL
    True
    """
    for port in random.sample(BELOW_EPHEMERAL, 200):
        if _binds(port):
            return port
    raise OSError(f"no free port between 18000 and 32000 on {HOST}")


def _binds(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def the_day() -> Day:
    """What this process was told at its start: the file named on its command line."""
    return msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Day)


async def until_told_to_stop() -> None:
    """Return when the parent closes our stdin, on purpose or because it is no more."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
