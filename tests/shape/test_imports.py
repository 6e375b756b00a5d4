"""What the import rules in pyproject.toml cannot say: extras are imported late, and policies read no clock."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASE = {"click", "cronsim", "msgspec"}
POLICIES = sorted((ROOT / "src" / "treppe" / "policy").glob("*.py"))
CLOCKS = {"now", "utcnow", "today"}

NAME_WHAT_COMES_FROM_OUTSIDE = """
import sys
before = set(sys.modules)
import {module}
files = {{name.split(".")[0]: getattr(sys.modules[name], "__file__", None) or "" for name in set(sys.modules) - before}}
print(*sorted(name for name, file in files.items() if "site-packages" in file))
"""


@pytest.mark.parametrize("module", ["treppe", "treppe.cli"])
def test_importing_needs_only_the_base_dependencies(module):
    program = NAME_WHAT_COMES_FROM_OUTSIDE.format(module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()) <= BASE


def test_there_are_policies_to_look_at():
    assert len(POLICIES) > 1


@pytest.mark.parametrize("policy", POLICIES, ids=lambda path: path.stem)
def test_policies_are_told_the_time(policy):
    read = [
        f"{policy.name}:{node.lineno}"
        for node in ast.walk(ast.parse(policy.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS
    ]
    assert read == []
