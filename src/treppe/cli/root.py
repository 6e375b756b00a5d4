"""The group ``treppe`` with all its commands."""

from __future__ import annotations

from typing import Final

import click

from treppe.cli import enqueue, jobs, queues, running, settings, status
from treppe.cli.kit import Group, shared

EXIT_CODES: Final = """\b
Exit codes:
  0    all is well
  1    something was found, refused, or does not exist
  2    wrong usage or wrong settings
  3    the store cannot be reached
  130  interrupted
"""


@click.group(cls=Group, params=shared(), epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="treppe", message="treppe %(version)s")
def root() -> None:
    """A durable job queue and webhook buffer that works at the pace the slowest system allows.

    Begin with `treppe init`, then `treppe check`, then `treppe up`.
    """


for command in (
    settings.init,
    settings.check,
    settings.doctor,
    settings.migrate,
    settings.sql,
    running.up,
    running.work,
    running.drain,
    running.demo,
    status.status,
    jobs.jobs,
    jobs.dead,
    queues.queues,
    enqueue.enqueue,
):
    root.add_command(command)
