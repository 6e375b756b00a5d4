"""A look at the settings before anything is opened: the rules of ``config.check``, and each door made on trial."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from treppe.config import Settings, Web
from treppe.config.check import check
from treppe.config.finding import Finding, line_of, lines_of
from treppe.errors import ConfigError


def findings(settings: Settings, file: Path | None = None) -> list[Finding]:
    """Everything there is to say about the settings, with the lines of *file*; errors first."""
    found = check(settings)
    found[:0] = _doors(settings, {finding.where for finding in found if finding.level == "error"})
    lines = lines_of(file.read_text("utf-8-sig")) if file and file.is_file() else {}
    return [replace(finding, line=line_of(lines, finding.where)) for finding in found]


def refuse_errors(settings: Settings, file: Path) -> list[Finding]:
    """The warnings; ConfigError with all errors when there are any."""
    found = findings(settings, file)
    errors = [finding for finding in found if finding.level == "error"]
    if errors:
        raise ConfigError(str(file), "it cannot start like this" + "".join(f"\n  {error}" for error in errors))
    return [finding for finding in found if finding.level == "warning"]


def refuse_port(web: Web) -> None:
    """ConfigError when nobody could listen there: a sentence now instead of a server's log later."""
    try:
        family = socket.getaddrinfo(web.host, web.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        socket.create_server((web.host, web.port), family=family).close()
    except OSError as error:
        problem, cure = _NO_PORT.get(error.errno or 0, (error.strerror or str(error), "Correct host under [web]"))
        raise ConfigError("web", f"nobody can listen on {web.host}, port {web.port}: {problem}", cure) from error


_NO_PORT: Final = {
    errno.EADDRINUSE: ("it is taken", "Is Treppe running already? Else choose another port under [web]"),
    errno.EACCES: ("no permission", "Choose a port above 1023 under [web], and put a proxy in front"),
    errno.EADDRNOTAVAIL: ("this machine has no such address", 'Use host = "127.0.0.1" or "0.0.0.0" under [web]'),
}


def _doors(settings: Settings, known: set[str]) -> list[Finding]:
    """What only a door itself finds: tests and topics that cannot be."""
    from treppe.door.sender import Sender

    found = []
    for source in settings.sources.values():
        if any(where.startswith(f"source.{source.name}.") for where in known):
            continue
        try:
            Sender(source, settings.destinations)
        except ConfigError as error:
            found.append(Finding("error", error.where, error.problem, error.cure))
    return found
