"""Where the log of a running Treppe goes: stderr, one line per event, as text or as JSON."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec

from treppe.eyes.plain import plain
from treppe.eyes.words import iso


def log_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that runs: how much, and in which form."""
    function = click.option("--log-json", is_flag=True, help="Write the log as JSON, one object a line.")(function)
    return click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="How much to write on stderr.",
    )(function)


def start_log(log_level: str, log_json: bool) -> None:
    """Send everything that is logged in this process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(AsJson() if log_json else AsText("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(level=log_level.upper(), handlers=[handler], force=True)
    if log_level != "debug":
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it tells every step of its start


class AsText(logging.Formatter):
    """One line for people. What came from outside cannot command their terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and a traceback under it."""
        return plain(super().format(record))


class AsJson(logging.Formatter):
    """One JSON object a line, for machines: at, level, logger, message, and error where there is one.

    >>> record = logging.LogRecord("treppe.worker", logging.INFO, "", 1, "%d done", (3,), None)
    >>> record.created = 0.0
    >>> AsJson().format(record)
    '{"at":"1970-01-01T00:00:00+00:00","level":"info","logger":"treppe.worker","message":"3 done"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """The object."""
        line = {
            "at": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
