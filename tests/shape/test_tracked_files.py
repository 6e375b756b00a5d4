"""What the repository holds speaks of the project alone, and what the front door says about itself is true."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Written apart, or this file would find itself.
FOREIGN = [
    "pypi" + r"\.org",
    "python" + r"hosted\.org",
    r"npm" + r"js\.(org|com)",
    "deb" + r"ian\.org",
    r"(?<![\w.])/wo" + "rk/",
    r"\.\./sha" + "red/",
    "DES" + r"IGN\.md",
]


def tracked_files() -> dict[str, str]:
    """Path and text of every tracked file that is text."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, timeout=60).stdout
    paths = [path for path in listed.decode().split("\0") if path and (ROOT / path).is_file()]
    return {path: (ROOT / path).read_text("utf-8", errors="replace") for path in paths}


def test_no_file_names_a_registry_or_a_place_outside_the_repository():
    files = tracked_files()
    assert "dev.py" in files
    found = [f"{path}: {match[0]}" for path, text in files.items() for match in re.finditer("|".join(FOREIGN), text)]
    assert found == []


@pytest.mark.parametrize("command", ["python3 dev.py demo", "python3 dev.py test"])
def test_the_readme_names_the_command(command):
    assert command in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("command", ["python3 dev.py check", "python3 dev.py test"])
def test_the_gate_runs_the_command(command):
    assert command in (ROOT / ".ci" / "run").read_text("utf-8")
