"""Does what a page tells its reader to do: block after block, in an empty folder, and compares what comes of it.

Two ports of the pages are replaced by free ones, so that nothing else on the machine is in the way.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Self

from tests.docs.pages import Block
from treppe.cli.preflight import findings
from treppe.config.load import load

PORTS: Final = ("8080", "9000")
PATIENCE: Final = 60.0
"""Seconds that anything of a page may take."""

STAYS_OPEN: Final = "stays open"
UNTIL_SO: Final = "again until it says so"
EXIT_CODE: Final = "exit code "

INTERPRETER: Final = """
import json, sys, traceback
names = {}
for line in sys.stdin:
    name, code = json.loads(line)
    names["__name__"] = name
    try:
        exec(compile(code, f"<{name}>", "exec"), names)
        end = "ok"
    except BaseException:
        end = traceback.format_exc()
    print(json.dumps({"end": end}), flush=True)
"""


class Story:
    """One page, tried in *folder*. Use it as a context manager: it ends what it started."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        home = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TREPPE_", "PYTEST"))}
        self.environment = kept | home | variables
        self.exports = ""
        self.open: list[Terminal] = []
        self.python: Python | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as ends:
            for terminal in self.open:
                ends.callback(terminal.close)
            if self.python:
                ends.callback(self.python.close)

    def tell(self, block: Block) -> None:
        """Try one block; AssertionError says what was different."""
        text = self.with_free_ports(block.text)
        if block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        KINDS[block.kind](self, block, text)

    def with_free_ports(self, text: str) -> str:
        return re.sub(rf"\b({'|'.join(PORTS)})\b", lambda port: self.ports[port[0]], text)

    def run_python(self, block: Block, text: str) -> None:
        if self.python is None:
            self.python = Python(self.folder, self.environment)
        name = block.file.removesuffix(".py").replace("/", ".") if block.file else "page"
        end = self.python.run(name, text)
        assert end == "ok", end

    def load_toml(self, block: Block, text: str) -> None:
        path = self.folder / (block.file or "snippet.toml")
        path.write_text(text)
        settings = load(path)
        with environment(dict.fromkeys(re.findall(r"env:(\w+)", text), SECRET)):
            errors = [str(found) for found in findings(settings, path) if found.level == "error"]
        assert not errors, "\n".join(errors)

    def run_shell(self, block: Block, text: str) -> None:
        self.exports += "".join(f"{line}\n" for line in text.splitlines() if line.startswith("export "))
        script = f"set -euo pipefail\n{self.exports}{text}"
        if STAYS_OPEN in block.remark:
            self.open.append(Terminal(script, self.folder, self.environment))
            expected = self.with_free_ports(block.says or "")
            wait_for(lambda: self.open[-1].says(expected), lambda: self.open[-1].printed)
        elif UNTIL_SO in block.remark:
            wait_for(lambda: self.agrees(block, self.printed(script)), lambda: self.printed(script)[1])
        else:
            done = self.printed(script)
            assert self.agrees(block, done), f"exit code {done[0]}\n{done[1]}"

    def printed(self, script: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout

    def agrees(self, block: Block, done: tuple[int, str]) -> bool:
        """Is this the exit code, and is this what the page says it prints?"""
        wanted = re.search(rf"{EXIT_CODE}(\d+)", block.remark)
        same_code = done[0] == (int(wanted[1]) if wanted else 0)
        return same_code and (block.says is None or alike(self.with_free_ports(block.says), done[1]))


SECRET: Final = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"  # fit for every use: long, printable, base64
KINDS: Final[dict[str, Callable[[Story, Block, str], None]]] = {
    "python": Story.run_python,
    "toml": Story.load_toml,
    "sh": Story.run_shell,
}
"""What is done with a block, by the word behind its fence."""


class Python:
    """One interpreter for all of a page's Python, as for somebody who types it in."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", INTERPRETER],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, code: str) -> str:
        """ "ok", or the traceback."""
        assert self._process.stdin
        assert self._process.stdout
        alarm = threading.Timer(PATIENCE, self._process.kill)
        alarm.start()
        try:
            self._process.stdin.write(json.dumps([name, code]) + "\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                if line.startswith('{"end":'):
                    return str(json.loads(line)["end"])
        finally:
            alarm.cancel()
        return f"it took longer than {PATIENCE:g} s, or ended its interpreter"

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Terminal:
    """A command that goes on running, as in a window of its own."""

    def __init__(self, script: str, folder: Path, variables: dict[str, str]) -> None:
        self._log = folder / f".terminal-{time.monotonic_ns()}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", script], cwd=folder, env=variables, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def printed(self) -> str:
        return self._log.read_text()

    def says(self, expected: str) -> bool:
        """Has it printed this by now? It must not have ended."""
        assert self._process.poll() is None, self.printed
        return alike(f"…{expected.strip()}…", self.printed)

    def close(self) -> None:
        """End it and its children as Ctrl-C does."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGINT)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            raise


class environment:  # noqa: N801 - reads as a statement
    """These variables, for as long as the block."""

    def __init__(self, variables: dict[str, str]) -> None:
        self._new, self._old = variables, {name: os.environ.get(name) for name in variables}

    def __enter__(self) -> None:
        os.environ.update(self._new)

    def __exit__(self, *_: object) -> None:
        for name, value in self._old.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def alike(expected: str, printed: str) -> bool:
    """Is it what the page says? ``…`` stands for anything, a point in time for any other, a blank for several."""
    pattern = re.escape(plain(expected)).replace("\\\n…\\\n", "\n(?:.*?\n)?").replace("…", ".*?")
    return re.fullmatch(pattern, plain(printed), re.DOTALL) is not None


def plain(text: str) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( \w+)?", "TIME", text)
    return "\n".join(re.sub(" +", " ", line).rstrip() for line in text.splitlines()).strip()


def free_ports(n: int) -> list[str]:
    with ExitStack() as sockets:
        taken = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [str(each.getsockname()[1]) for each in taken]


def wait_for(condition: Callable[[], bool], shown: Callable[[], str]) -> None:
    """Ask again and again; AssertionError with what there was to see instead."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, shown()
        time.sleep(0.1)
