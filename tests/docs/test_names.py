"""What the pages name is there: files, links, commands with their options, times of cron."""

import configparser
import re
import shlex

import click
import cronsim
import pytest

import dev
from tests.docs.pages import NAMES, PAGES, ROOT, blocks, code_spans, commands, prose
from treppe.cli.root import root

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
A_FILE_OF_OURS = re.compile(r"(?:\.ci|bench|docs|src|tests)(?:/[\w.-]+)+/?|[A-Z]+\.md|dev\.py|pyproject\.toml")
MADE_BY_THE_READER = {"tests/test_my_store.py"}
MEANT_TO_BE_WRONG = {"statsu"}
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=NAMES)


@EVERY_PAGE
def test_every_link_leads_somewhere(page):
    for link in LINK.findall(page.read_text("utf-8")):
        if "://" not in link:
            file, _, anchor = link.partition("#")
            target = page.parent / file if file else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.read_text("utf-8")), link


@EVERY_PAGE
def test_every_file_that_is_named_is_there(page):
    named = {span for span in code_spans(page.read_text("utf-8")) if A_FILE_OF_OURS.fullmatch(span)}
    assert [file for file in sorted(named - MADE_BY_THE_READER) if not (ROOT / file).exists()] == []


@EVERY_PAGE
def test_every_command_is_one(page):
    named = set(commands(page.read_text("utf-8"))) - MEANT_TO_BE_WRONG
    wrong = [f"treppe {call}: {why}" for call in named if (why := fault(call))]
    assert wrong == []


@EVERY_PAGE
def test_every_command_of_dev_py_is_one(page):
    named = re.findall(r"(?<!\w)dev\.py ([a-z]+)", page.read_text("utf-8"))
    assert set(named) <= set(dev.COMMANDS)


@EVERY_PAGE
def test_blocks_without_a_language_hold_commands_only(page):
    lines = [line for block in blocks(page.read_text("utf-8")) if not block.kind for line in block.text.splitlines()]
    assert [line for line in lines if line.split()[0] not in {"treppe", "python3", "pytest"}] == []


@EVERY_PAGE
def test_every_time_of_cron_can_be_read(page):
    for block in blocks(page.read_text("utf-8")):
        for line in block.text.splitlines() if block.kind == "cron" else []:
            assert cronsim.CronSim(" ".join(line.split()[:5]), cronsim.cronsim.datetime(2026, 1, 1))


@EVERY_PAGE
def test_every_unit_of_systemd_can_be_read(page):
    for block in blocks(page.read_text("utf-8")):
        if block.kind == "ini":
            unit = configparser.ConfigParser(delimiters="=", interpolation=None)
            unit.read_string(block.text)
            assert unit["Service"]["ExecStart"].split()[0].endswith("/bin/treppe")
            assert int(unit["Service"]["TimeoutStopSec"]) > 25 + 10  # what running jobs and requests may take


def test_every_page_is_reached_from_the_readme():
    links = LINK.findall((ROOT / "README.md").read_text("utf-8"))
    assert {name for name in NAMES if name != "README.md"} <= set(links)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("up --no-worker", ""),
        ("--app shop:app jobs show ID", ""),
        ("dead revive --all --queue crm", ""),
        ("upp", "no such command"),
        ("jobs shw", "no such command"),
        ("up --workers 3", "no such option"),
        ("drain --budget", "requires an argument"),
    ],
)
def test_what_counts_as_a_command(call, why):
    assert why in (fault(call) or "") if why else fault(call) is None


def fault(call: str) -> str | None:
    """What is wrong with a call of treppe, as its own parser sees it; None if nothing is."""
    words = [word.strip("`.,;:") or word for word in shlex.split(call.replace("…", "x"))]
    command: click.Command = root
    while True:
        try:
            _, words, _ = command.make_parser(click.Context(command)).parse_args(words)
        except click.ClickException as error:
            return error.format_message().lower()
        if not isinstance(command, click.Group) or not words:
            return None
        name, *words = words
        if name not in command.commands:
            return f"no such command: {name}"
        command = command.commands[name]


def anchors(page: str) -> set[str]:
    """The names under which GitHub reaches the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
