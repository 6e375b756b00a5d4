"""docs/operations.md: the call for somebody else's scheduler, and the exit codes."""

import re
from urllib.request import Request, urlopen

from tests.docs.pages import ROOT, Block, blocks, tables
from tests.docs.story import Story, alike
from treppe import cli

PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")


def test_the_call_of_a_scheduler_is_answered_as_the_page_shows(tmp_path):
    settings, secret, *_ = [
        block for block in blocks(PAGE) if "DRAIN_SECRET" in block.text and block.kind in {"toml", "sh"}
    ]
    (call,) = [block for block in blocks(PAGE) if block.text.startswith("curl")]
    value = re.findall(r"DRAIN_SECRET=(\S+)", secret.text)[0]
    with Story(tmp_path) as story:
        story.tell(settings)
        story.tell(secret)
        story.tell(Block("sh", "treppe up --no-worker\n", 0, "stays open", "Treppe is up"))
        method, header, url = re.findall(r'--request (\w+) --header "(.+?)" "(.+?)"', story.with_free_ports(call.text))[
            0
        ]
        name, _, content = header.replace("$DRAIN_SECRET", value).partition(": ")
        with urlopen(Request(url, method=method, headers={name: content}), timeout=30) as answer:
            assert alike(call.says or "", answer.read().decode())


def test_the_exit_codes_are_those_of_the_command_line():
    (codes,) = [table for table in tables(PAGE) if table[0] == ["Code", "Meaning"]]
    assert {int(code): meaning for code, meaning in codes[1:]} == {
        0: "all is well",
        cli.FOUND: "something was found, refused, or does not exist",
        cli.USAGE: "wrong usage or wrong settings",
        cli.STORE: "the store cannot be reached",
        cli.INTERRUPTED: "interrupted",
    }
