"""Commands about the settings and the house itself: init, check, doctor, migrate, sql."""

from __future__ import annotations

from pathlib import Path

import click

from treppe.cli import FOUND, output
from treppe.cli.house import House, house
from treppe.cli.kit import Command, as_json
from treppe.config.finding import Finding
from treppe.errors import ConfigError


@click.command(cls=Command)
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@house
def init(house: House, force: bool) -> None:
    """Write a treppe.toml with everything explained."""
    from treppe.config.template import SECRETS, TEMPLATE

    path = house.path
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise ConfigError(str(path), "this file is there already", "Overwrite it: treppe init --force") from None
    except FileNotFoundError:
        raise ConfigError(str(path), "its folder does not exist", f"Make it: mkdir -p {path.parent}") from None
    output.say(f"{path} is written. It needs {len(SECRETS)} secrets in the environment:\n")
    for name in SECRETS:
        output.say(f"  export {name}=…")
    output.say("\nThen: treppe check, and treppe up")


@click.command(cls=Command)
@as_json
@house
def check(house: House, as_json: bool) -> int:
    """Read the settings and say what is wrong or could be better.

    Exit code 1 when there are errors. Warnings and hints do not count.
    """
    found = _all_findings(house)
    errors = sum(finding.level == "error" for finding in found)
    if as_json:
        output.document({"file": str(house.path), "errors": errors, "findings": found})
    else:
        for finding in found:
            output.say(f"{finding.level:<7}  {finding}")
        output.note(_verdict(house.path, errors))
    return FOUND if errors else 0


def _all_findings(house: House) -> list[Finding]:
    """What could not be read, or else what is said about settings and app. No TOML at all raises ConfigError."""
    from treppe.cli.preflight import findings
    from treppe.config.load import read

    settings, unread = read(house.path)
    return unread or [*_of_app(house), *findings(settings, house.path)]


def _of_app(house: House) -> list[Finding]:
    from treppe.app.premises import refuse_another_store

    try:
        if house.app is not None:
            refuse_another_store(house.app, house.settings)
    except ConfigError as error:
        return [Finding("error", error.where, error.problem, error.cure)]
    return []


def _verdict(path: Path, errors: int) -> str:
    if errors:
        return f"{path}: {errors} {'error' if errors == 1 else 'errors'}"
    return f"{path} is fine"


@click.command(cls=Command)
@as_json
@house
def doctor(house: House, as_json: bool) -> int:
    """Look at everything Treppe depends on: Python, disk, store, clock, secrets, limits.

    Exit code 1 when something fails. Nothing is changed.
    """
    from treppe.cli.doctor import examine

    results = examine(house)
    failed = any(result.level == "fail" for result in results)
    if as_json:
        output.document({"ok": not failed, "results": results})
    else:
        for result in results:
            cure = f"\n      {result.cure}" if result.cure else ""
            output.say(f"{result.level:<4}  {result.name}: {result.text}{cure}")
    return FOUND if failed else 0


@click.command(cls=Command)
def sql() -> None:
    """Print the tables on PostgreSQL as one script, for psql, Alembic or a Django migration. It may be run again."""
    from treppe.app import tables

    output.say(tables().rstrip())


@click.command(cls=Command)
@as_json
@house
def migrate(house: House, as_json: bool) -> None:
    """Bring the store's tables up to date. Safe to repeat."""
    from treppe.app import open_store
    from treppe.app.mirror import mirror

    store = open_store(house.settings.store, migrate=False)
    try:
        applied = store.migrate()
        mirror(store, house.app.tasks if house.app else {}, house.settings.destinations.values())
    finally:
        store.close()
    if as_json:
        output.document({"applied": applied})
    else:
        output.say("\n".join(f"applied {name}" for name in applied) or "the store is up to date")
