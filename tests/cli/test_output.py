import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import support
from tests.cli.support import Ran
from treppe.cli import output

Treppe = Callable[..., Ran]


def on_a_terminal(*arguments: str) -> str:
    """What treppe prints where stdout is a terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    command = [sys.executable, "-m", "treppe", *arguments]
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # Linux says EIO where others say that it ended
        pass
    finally:
        os.close(ours)
    return shown.decode()


def test_a_terminal_gets_a_table_with_a_bold_head(folder: Path) -> None:
    support.dead(folder, "a", error="[red]no such customer[/red] \x1b[2J")
    shown = on_a_terminal("jobs", "ls")
    assert "\x1b[1m" in shown
    assert "[red]no such customer[/red]" in shown
    assert "\x1b[2J" not in shown


def test_a_pipe_gets_plain_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("name", "n"), [("short", 7), ("a much longer one", 12345)], "nothing", ("n",))
    assert capsys.readouterr().out == ("name                   n\nshort                  7\na much longer one  12345\n")


def test_without_rich_a_terminal_gets_plain_columns_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    output.table(("name",), [("a",)], "nothing")
    assert capsys.readouterr().out == "name\na\n"


def test_points_in_time_are_readable_in_documents(capsys: pytest.CaptureFixture[str]) -> None:
    output.document({"at": 0.0, "jobs": ({"done_at": 1.0, "ended_at": None, "age_s": 2.0},)})
    assert json.loads(capsys.readouterr().out) == {
        "at": "1970-01-01T00:00:00+00:00",
        "jobs": [{"done_at": "1970-01-01T00:00:01+00:00", "ended_at": None, "age_s": 2.0}],
    }


def test_fields_leave_out_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    output.fields([("id", "a"), ("error", ""), ("deadline", None), ("tries", 0)])
    assert capsys.readouterr().out == "id     a\ntries  0\n"
    output.fields([])
    assert capsys.readouterr().out == ""
