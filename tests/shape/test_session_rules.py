"""The rules of tests/conftest.py, tried on a small test session of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = ROOT / "tests" / "conftest.py"
SKIPPING = "import pytest\ndef test_works(): pass\ndef test_waits(): pytest.skip('no such thing here')\n"
LEAVING_A_THREAD = """
import threading
def test_leaves(): threading.Thread(target=threading.Event().wait, args=[0.5], name='lost').start()
"""
LEAVING_A_PROCESS = (
    "import subprocess, sys\ndef test_leaves():\n"
    "    global process\n    process = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
)


@pytest.fixture
def session(tmp_path: Path):
    """Run the given test file under our conftest: its exit code and what it printed."""

    def run(test_file: str, **variables: str) -> tuple[int, str]:
        conftest = CONFTEST.read_text().replace("PATIENCE = 5.0", "PATIENCE = 0.1")
        (tmp_path / "conftest.py").write_text(conftest)
        (tmp_path / "test_it.py").write_text(test_file)
        environment = {name: value for name, value in os.environ.items() if name != "CI"} | variables
        environment["PYTHONPATH"] = str(CONFTEST.parents[1])  # it brings fixtures of ours along
        options = ["-p", "no:cacheprovider", "-o", f"pythonpath={ROOT}"]
        command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            printed, _ = process.communicate("", timeout=60)
        return process.returncode, printed

    yield run
    shutil.rmtree(tmp_path)


def test_a_skip_is_said_aloud_with_its_reason(session):
    code, printed = session(SKIPPING)
    assert code == 0
    assert "1 SKIPPED, 1 of them unexpected" in printed
    assert "test_it.py::test_waits: Skipped: no such thing here" in printed


def test_an_unexpected_skip_fails_the_run_where_ci_is_set(session):
    code, printed = session(SKIPPING, CI="true")
    assert code == 1
    assert "an unexpected skip counts as a failure" in printed


def test_a_run_without_skips_passes_where_ci_is_set(session):
    code, printed = session("def test_works(): pass\n", CI="true")
    assert code == 0
    assert "SKIPPED" not in printed


@pytest.mark.parametrize(
    ("test_file", "left"),
    [(LEAVING_A_THREAD, "thread lost"), (LEAVING_A_PROCESS, "process ")],
    ids=["thread", "process"],
)
def test_whoever_leaves_something_running_fails(session, test_file, left):
    code, printed = session(test_file)
    assert code == 1
    assert f"the test left running: {left}" in printed
