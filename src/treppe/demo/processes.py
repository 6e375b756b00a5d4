"""The processes of the demo: started with their output in a file each, watched, and ended by their id."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

GRACE = 1.0
"""Seconds that one of our own processes gets to end at the end of its stdin."""


class Failed(Exception):
    """The run cannot go on. The text says what hung or ended, for people."""


class Child:
    """One process. What it prints goes to ``NAME.log`` in the folder, except for its first line if that is read."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name, self.pid = name, process.pid
        self._process, self._log = process, log
        self.ending = False

    @property
    def ended(self) -> bool:
        """True when the process is gone."""
        return self._process.returncode is not None

    def check(self) -> None:
        """Raise :class:`Failed` when it ended although nobody wanted it to."""
        if self.ended and not self.ending:
            code = self._process.returncode
            raise Failed(f"{self.name} ended with code {code}. Its last words:\n{self.last_words()}")

    def last_words(self, lines: int = 15) -> str:
        """The end of its log."""
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(f"    {line}" for line in text.splitlines()[-lines:]) or "    (none)"

    async def announced(self) -> dict[str, int]:
        """The ports it prints in its first line."""
        line = await self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            await self._process.wait()
            self.check()
        return {str(name): int(port) for name, port in json.loads(line).items()}

    async def kill(self) -> None:
        """kill -9, now."""
        self.ending = True
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        await self._process.wait()

    def finish(self) -> None:
        """Tell one of our own processes to come to its end."""
        self.ending = True
        if self._process.stdin:
            self._process.stdin.close()

    async def stop(self, patience: float = 15.0) -> None:
        """Ask it to end, more firmly each time, and kill it when it has not after *patience* seconds."""
        self.finish()
        if self._process.stdin and await self._ends_within(GRACE):
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        if not await self._ends_within(patience):
            await self.kill()

    async def _ends_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._process.wait(), seconds)
        except TimeoutError:
            return False
        return True


class Children:
    """All processes of a run; leaving the block ends them, the last one first."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, dict(environment)
        self._all: list[Child] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            await asyncio.gather(*(child.stop() for child in self._all if not child.ended))
        except asyncio.CancelledError:  # somebody is in a hurry
            await asyncio.gather(*(child.kill() for child in self._all))
            raise

    async def start(
        self, name: str, module: str, *arguments: str, own: bool = False, variables: Mapping[str, str] = {}
    ) -> Child:
        """``python -m module arguments``. *own* processes of the demo have a stdin whose end tells them to stop."""
        log = self._folder / f"{name}.log"
        with log.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                *arguments,
                cwd=self._folder,
                env={**os.environ, **self._environment, **variables},
                stdin=asyncio.subprocess.PIPE if own else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if own else file,
                stderr=file,
                start_new_session=True,
            )
        child = Child(name, process, log)
        self._all.append(child)
        return child

    def check(self) -> None:
        """Raise :class:`Failed` when one of them ended although nobody wanted it to."""
        for child in self._all:
            child.check()
