"""House numbers: a file that outgrows them wants to become two, a function several."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
FILES = {str(path.relative_to(ROOT)): path for path in [ROOT / "dev.py", *sorted((ROOT / "src").rglob("*.py"))]}

LINES_IN_A_FILE = 350
LINES_IN_A_FUNCTION = 40
LINES_IN_THE_MEDIAN_FUNCTION = 5

LONGER_FILES: dict[str, str] = {"src/treppe/job.py": "all the words and the state machine on one page"}
"""Files that may be longer, and the reason."""

LONGER_FUNCTIONS: dict[str, str] = {}
"""Functions that may be longer, as path:name, and the reason."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_files_are_short():
    long = {name for name, path in FILES.items() if len(path.read_text().splitlines()) > LINES_IN_A_FILE}
    assert long == set(LONGER_FILES)


def test_functions_are_short():
    long = {name for name, lines in function_lengths() if lines > LINES_IN_A_FUNCTION}
    assert long == set(LONGER_FUNCTIONS)


def test_most_functions_are_very_short():
    assert median(lines for _, lines in function_lengths()) <= LINES_IN_THE_MEDIAN_FUNCTION


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f():\n    return 1\n", 1),
        ("def f():\n    '''It says\n    much.'''\n    a = 1\n    return a\n", 2),
        ("def f():\n    '''It says much.'''\n", 0),
        ("async def f(\n    a,\n    b,\n):\n    return (\n        a\n    )\n", 3),
    ],
)
def test_only_the_lines_of_the_body_count(source, lines):
    function = ast.parse(source).body[0]
    assert isinstance(function, Function)
    assert body_lines(function) == lines


def function_lengths() -> Iterator[tuple[str, int]]:
    for name, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                yield f"{name}:{node.name}", body_lines(node)


def body_lines(function: Function) -> int:
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return statements[-1].end_lineno - statements[0].lineno + 1 if statements else 0
