"""What all commands share: the options of the group wherever they stand, "did you mean", ``--json``."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any

import click

from treppe.cli.house import DEFAULT, House
from treppe.eyes.plain import plain


class Failed(click.ClickException):
    """What was asked for could not be done; the sentence says why, and what to do."""

    def show(self, file: IO[Any] | None = None) -> None:
        """The sentence, on stderr."""
        click.echo(f"treppe: {plain(self.message)}", file=file, err=True)


class Command(click.Command):
    """A command that takes the options of the group as well, wherever they stand."""

    def __init__(self, name: str | None, params: list[click.Parameter] | None = None, **kwargs: Any) -> None:
        super().__init__(name, params=[*(params or []), *shared(hidden=True)], **kwargs)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Answer an unknown command with the nearest known one."""
        from treppe.config.words import closest

        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if near := closest(args[0], self.list_commands(ctx)):
                raise click.UsageError(f'there is no command "{args[0]}". Did you mean "{near}"?', ctx) from None
            raise


def _keep(name: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def callback(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            setattr(context.ensure_object(House), name, value)

    return callback


def shared(hidden: bool = False) -> list[click.Option]:
    """The options that say with which settings to work."""
    variables = (None, None) if hidden else ("TREPPE_CONFIG", "TREPPE_APP")
    return [
        click.Option(
            ["-c", "--config"],
            metavar="FILE",
            envvar=variables[0],
            show_envvar=True,
            expose_value=False,
            hidden=hidden,
            callback=_keep("file"),
            help=f"The settings.  [default: {DEFAULT}]",
        ),
        click.Option(
            ["-a", "--app"],
            metavar="MODULE:VARIABLE",
            envvar=variables[1],
            show_envvar=True,
            expose_value=False,
            hidden=hidden,
            callback=_keep("app_path"),
            help="The app with Python tasks; wins over the settings.",
        ),
    ]


as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
"""The option of every command that has an answer."""
