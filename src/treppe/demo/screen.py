"""What one sees while it runs: a block that is redrawn on a terminal, else a line every few seconds."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TextIO

from treppe.eyes.measure import QueueFigures, Summary

EVERY = 4.0
"""Seconds between two lines where there is no terminal."""

BAR = 24
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"


class Paint:
    """Colours, where they are wanted (no-color.org).

    >>> Paint(False).green("kept")
    'kept'
    """

    def __init__(self, on: bool) -> None:
        self._on = on

    def bold(self, text: str) -> str:
        """Bright."""
        return self._code("1", text)

    def green(self, text: str) -> str:
        """All is well."""
        return self._code("32", text)

    def red(self, text: str) -> str:
        """It is not."""
        return self._code("31;1", text)

    def yellow(self, text: str) -> str:
        """Held."""
        return self._code("33", text)

    def dim(self, text: str) -> str:
        """Beside the point."""
        return self._code("2", text)

    def _code(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._on else text


class Screen:
    """Draws the state of the run; ``say`` adds a notable moment."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self.live = self._out.isatty() and os.environ.get("TERM") != "dumb"
        self.paint = Paint(self.live and "NO_COLOR" not in os.environ)
        self._began = time.monotonic()
        self._drawn = 0
        self._line_at = 0.0
        self._moments: deque[str] = deque(maxlen=10)

    def say(self, text: str) -> None:
        """Tell a moment, with the seconds since the start."""
        line = f"{self._clock()}  {text}"
        self._moments.append(line)
        if not self.live:
            self._write(line + "\n")

    def show(self, made: int, arrived: Mapping[str, int], now: Summary) -> None:
        """Draw the figures of now."""
        if self.live:
            block = [*_block(made, arrived, now, self.paint, self._clock()), "", *self._moments]
            lines = "".join(f"\x1b[2K{line}\n" for line in block)
            self._write(f"{NO_WRAP}{_up(self._drawn)}{lines}\x1b[J{WRAP}")
            self._drawn = len(block)
        elif time.monotonic() - self._line_at >= EVERY:
            self._line_at = time.monotonic()
            self._write(f"{self._clock()}  {_one_line(made, arrived, now)}\n")

    def print(self, text: str = "") -> None:
        """Print something that stays."""
        self._write(text + "\n")
        self._drawn = 0

    def _clock(self) -> str:
        return f"{time.monotonic() - self._began:6.1f} s"

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _up(lines: int) -> str:
    return f"\x1b[{lines}F" if lines else ""


def _block(made: int, arrived: Mapping[str, int], now: Summary, paint: Paint, clock: str) -> Sequence[str]:
    age = f"{now.oldest_age_s:.0f} s" if now.oldest_age_s is not None else "–"
    head = f"accepted {made:,} orders   {paint.bold(f'{now.open:,} jobs open')}   oldest waits {age}   {clock}"
    states = {queue.queue: queue for queue in now.queues}
    lines = [paint.bold("The promotion Friday"), head, ""]
    for name, n in arrived.items():
        queue = states.get(name)
        share = min(1.0, n / max(1, made))
        full = int(share * BAR)
        bar = paint.green("█" * full) + paint.dim("░" * (BAR - full))
        lines.append(f"  {name:<11}{bar} {n:>7,}  {_state(queue, paint) if queue else ''}")
    return lines


def _state(queue: QueueFigures, paint: Paint) -> str:
    waits = {
        "waiting": queue.waiting,
        "running": queue.running,
        "behind their customer": queue.behind,
        "to try again": queue.retrying + queue.scheduled,
    }
    words = [f"{n:,} {what}" for what, n in waits.items() if n]
    words += [paint.yellow(f"{queue.unclear:,} unclear")] if queue.unclear else []
    words += [paint.red(f"{queue.dead:,} dead")] if queue.dead else []
    words += [paint.dim(f"{queue.openness * 100:.0f} % open")] if queue.openness < 1 else []
    words += [paint.yellow(held(queue))] if queue.held else []
    return ", ".join(words)


def held(queue: QueueFigures, now: float | None = None) -> str:
    """Why a queue does not go, and for how long.

    >>> held(QueueFigures("crm", held=True, why="down", resumes_at=104.2), now=100.0)
    'held: down, tried again in 4 s'
    """
    if queue.resumes_at is None:
        return f"held: {queue.why}"
    seconds = max(0.0, queue.resumes_at - (time.time() if now is None else now))
    return f"held: {queue.why}, tried again in {seconds:.0f} s"


def _one_line(made: int, arrived: Mapping[str, int], now: Summary) -> str:
    delivered = "  ".join(f"{name} {n:,}" for name, n in arrived.items())
    why = "; ".join(f"{queue.queue} {held(queue)}" for queue in now.queues if queue.held)
    age = f", oldest {now.oldest_age_s:.0f} s" if now.oldest_age_s else ""
    return f"accepted {made:,}  {delivered}  open {now.open:,}{age}" + (f"  ({why})" if why else "")
