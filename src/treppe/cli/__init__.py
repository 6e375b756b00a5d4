"""The command line. ``main`` turns every mistake of its user into one plain sentence and an exit code.

====  ========================================================
code  meaning
====  ========================================================
0     all is well
1     something was found, refused, or does not exist
2     wrong usage or wrong settings
3     the store cannot be reached
130   interrupted
====  ========================================================
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from treppe.errors import ConfigError, InvalidJob, NotFound, StoreError, StoreUnavailable, TreppeError, Unsupported

FOUND: Final = 1
USAGE: Final = 2
STORE: Final = 3
INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``treppe`` with these arguments (default: the process's own); returns the exit code."""
    from treppe.cli.root import root

    try:
        return int(root.main(None if argv is None else list(argv), prog_name="treppe", standalone_mode=False) or 0)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _told("stopped", INTERRUPTED)
    except TreppeError as error:
        return _told(_sentence(error), code_of(error))
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        return _told(f'this needs the extra "{extra}". Install it: pip install "treppe[{extra}]"', USAGE)
    except OSError as error:
        return _of_system(error)


EXTRAS: Final = {
    "aiohttp": "deliver",
    "httptools": "web",
    "jinja2": "web",
    "psycopg": "postgres",
    "starlette": "web",
    "uvicorn": "web",
    "yarl": "deliver",
}
"""Which extra brings a module."""


def code_of(error: TreppeError) -> int:
    """The exit code for an error."""
    if isinstance(error, StoreError):
        return STORE
    return USAGE if isinstance(error, ConfigError | InvalidJob | Unsupported) else FOUND


def _sentence(error: TreppeError) -> str:
    if isinstance(error, NotFound) and error.what == "job":
        return f"{error}. Look for it: treppe jobs ls"
    if isinstance(error, StoreUnavailable):
        return f"{error}{'' if str(error).endswith('?') else '.'} Try again in a moment, or see: treppe doctor"
    return str(error)


def _of_system(error: OSError) -> int:
    if error.errno == errno.EPIPE:
        # Whoever read our output has gone, as `head` does. Python would complain once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FOUND
    if isinstance(error, PermissionError):
        place = f"{error.filename}: " if error.filename else ""
        return _told(f"{place}no permission. Run this as the user that Treppe runs as", USAGE)
    raise error


def _told(sentence: str, code: int) -> int:
    from treppe.eyes.plain import plain

    click.echo(f"treppe: {plain(sentence)}", err=True)
    return code
