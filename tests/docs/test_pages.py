"""Every page is done as its reader would: each block is run, loaded or read, and prints what the page says."""

import os
import tomllib

import pytest

from tests.docs.pages import NAMES, PAGES, Block, blocks
from tests.docs.story import KINDS, Story, alike

SHOWN_ONLY = {"text", "mermaid", "js", "sql"}
READ_ELSEWHERE = {"ini", "cron", ""}
"""See test_names.py."""
NOT_RUN = "not run: "


DATABASE = "postgresql:///shop"
ON_POSTGRES = [page for page in PAGES if DATABASE in page.read_text("utf-8")]


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ON_POSTGRES], ids=lambda page: page.name)
def test_the_page_works_as_it_is_written(page, tmp_path):
    tell(page, tmp_path)


@pytest.mark.parametrize("page", ON_POSTGRES, ids=lambda page: page.name)
def test_the_page_works_with_the_database_that_it_asks_for(page, tmp_path, postgres18, monkeypatch):
    postgres18.execute("CREATE DATABASE shop")
    monkeypatch.setenv("PATH", f"{postgres18.programs}:{os.environ['PATH']}")  # psql and pg_dump
    reached_by = {"PGHOST": str(postgres18.folder), "PGPORT": str(postgres18.port), "PGUSER": "postgres"}
    try:
        tell(page, tmp_path, **reached_by, DJANGO_SETTINGS_MODULE="settings")
    finally:
        postgres18.drop("shop")


def tell(page, folder, **variables):
    with Story(folder, **variables) as story:
        for block in blocks(page.read_text("utf-8")):
            if block.kind in KINDS and not block.remark.startswith(NOT_RUN):
                try:
                    story.tell(block)
                except AssertionError as error:
                    pytest.fail(f"{page.name}, line {block.line}: {error}", pytrace=False)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_nothing_is_left_out_without_a_reason(page):
    found = blocks(page.read_text("utf-8"))
    assert [block.line for block in found if block.kind not in {*KINDS, *SHOWN_ONLY, *READ_ELSEWHERE}] == []
    assert [block.line for block in found if block.remark == NOT_RUN.strip()] == []


def test_a_block_that_fails_is_noticed(tmp_path):
    with Story(tmp_path) as story, pytest.raises(AssertionError, match="ZeroDivisionError"):
        story.tell(Block("python", "1 / 0\n", 1))


def test_a_command_that_fails_is_noticed(tmp_path):
    with Story(tmp_path) as story, pytest.raises(AssertionError, match=r"exit code 3\nbroken"):
        story.tell(Block("sh", "echo broken\nexit 3\n", 1))


def test_an_exit_code_that_is_meant_is_no_failure(tmp_path):
    with Story(tmp_path) as story:
        story.tell(Block("sh", "exit 3\n", 1, remark="exit code 3"))


def test_another_answer_than_the_page_shows_is_noticed(tmp_path):
    with Story(tmp_path) as story, pytest.raises(AssertionError, match="two"):
        story.tell(Block("sh", "echo two\n", 1, says="one\n"))


def test_settings_with_errors_are_noticed(tmp_path):
    with Story(tmp_path) as story, pytest.raises(AssertionError, match="http sends everything readable"):
        story.tell(Block("toml", '[destination.crm]\nurl = "http://crm.example/in"\n', 1))


def test_a_variable_and_a_file_last_for_the_whole_page(tmp_path):
    with Story(tmp_path) as story:
        story.tell(Block("python", "# there.py\nx = 7\n", 1))
        story.tell(Block("sh", "export NAME=ada\n", 1))
        story.tell(
            Block("sh", "python -c \"import there, os; print(there.x, os.environ['NAME'])\"\n", 1, says="7 ada\n")
        )


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("done 1\n", "done 1", True),
        ("done 1\n", "done 10", False),
        ("at 2026-11-30 19:53:11 UTC", "at 2027-01-02 03:04:05 UTC", True),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("in …, jitter", "in 9 s, jitter", True),
        ("a.c", "abc", False),
    ],
)
def test_what_counts_as_the_same_answer(expected, printed, same):
    assert alike(expected, printed) is same


def test_blocks_are_found_with_remark_file_and_answer():
    page = "# x\n\n<!-- stays open -->\n```sh\ntreppe up\n```\n```text\nup\n```\n\n```toml\n# treppe.toml\na = 1\n```\n"
    command, _, settings = blocks(page)
    assert (command.remark, command.says, command.line) == ("stays open", "up\n", 5)
    assert settings.file == "treppe.toml"
    assert tomllib.loads(settings.text) == {"a": 1}
