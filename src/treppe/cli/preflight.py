"""A look at the settings before anything is opened: the rules of ``config.check``, and each door made on trial."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from treppe.config import Settings
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
