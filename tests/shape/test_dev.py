"""The front door itself: it reads on an old Python, sets up what is missing, and passes on what it is told."""

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dev

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in another folder, whose environment dev.py believes to be its own."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "ENVIRONMENT", tmp_path / ".venv")
    monkeypatch.setattr(dev, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    monkeypatch.setattr(dev, "TOOLS", tmp_path / ".tools")
    monkeypatch.setattr(dev, "LOG", tmp_path / ".tools" / "setup.log")
    monkeypatch.setattr(dev, "STATE", tmp_path / ".tools" / "environment.json")
    return tmp_path


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The builds that were asked for; each one makes an environment that holds nothing but a Python."""
    asked: list[set[str]] = []

    def bare(holds: set[str]) -> None:
        asked.append(holds)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", dev.ENVIRONMENT], check=True, timeout=60)

    monkeypatch.setattr(dev, "ways", lambda: {"bare": bare})
    return asked


def door(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | variables
    command = [sys.executable, ROOT / "dev.py", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_an_old_python_can_read_the_file():
    ast.parse((ROOT / "dev.py").read_text("utf-8"), feature_version=(3, 7))


def test_an_old_python_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(sys, "version", "3.9.2 (default)")
    with pytest.raises(SystemExit, match=r"Treppe needs Python 3\.11 or newer, and this is 3\.9\.2\. "):
        exec(compile((ROOT / "dev.py").read_text("utf-8"), "dev.py", "exec"), {"__name__": "dev"})


def test_it_needs_nothing_but_the_standard_library():
    imported = [node for node in ast.walk(ast.parse((ROOT / "dev.py").read_text("utf-8"))) if is_import(node)]
    names = {alias.name for node in imported if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in imported if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_without_a_command_it_says_which_there_are():
    done = door()
    assert done.returncode == 0
    commands = [line.split()[0] for line in done.stdout.splitlines()[2:]]
    assert commands == ["demo", "test", "check", "bench", "sim", "nightly"]


def test_an_unknown_command_is_refused_with_the_nearest_one():
    done = door("tset")
    assert done.returncode == 2
    assert "there is no command 'tset'. Did you mean test?" in done.stderr


def test_the_first_run_builds_and_the_second_does_not(repository, builds):
    dev.prepare({"web"})
    dev.prepare({"web"})
    assert builds == [{"web"}]


def test_more_extras_are_added_to_those_already_there(repository, builds):
    dev.prepare({"web"})
    dev.prepare({"dev"})
    dev.prepare({"web"})
    assert builds == [{"web"}, {"web", "dev"}]


def test_changed_settings_make_the_environment_stale(repository, builds):
    dev.prepare({"web"})
    (repository / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    dev.prepare({"web"})
    assert builds == [{"web"}, {"web"}]


def test_another_python_makes_the_environment_stale(repository, builds, monkeypatch):
    dev.prepare({"web"})
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    dev.prepare({"web"})
    assert builds == [{"web"}, {"web"}]


def test_an_environment_whose_python_is_gone_is_built_anew(repository, builds):
    dev.prepare({"web"})
    dev.PYTHON.unlink()
    dev.prepare({"web"})
    assert builds == [{"web"}, {"web"}]


def test_a_half_built_environment_is_built_anew(repository, builds):
    dev.prepare({"web"})
    dev.write_state("", {"web"})
    (dev.ENVIRONMENT / "half").touch()
    dev.prepare({"web"})
    assert builds == [{"web"}, {"web"}]
    assert not (dev.ENVIRONMENT / "half").exists()


@pytest.mark.parametrize("state", ["", "[]", '{"made_for": 1}', '{"made_for": "", "holds": 1}'])
def test_a_broken_state_file_only_means_building_anew(repository, builds, state):
    dev.TOOLS.mkdir()
    dev.STATE.write_text(state)
    dev.prepare({"web"})
    assert builds == [{"web"}]


def test_an_environment_made_by_somebody_else_is_moved_aside(repository, builds, capsys):
    dev.ENVIRONMENT.mkdir()
    (dev.ENVIRONMENT / "mine").touch()
    dev.prepare({"web"})
    assert [path.name for path in repository.glob(".venv-*/*")] == ["mine"]
    assert "was not made by dev.py: moved to .venv-" in capsys.readouterr().err


def test_the_next_way_is_tried_when_one_fails(repository, builds, monkeypatch, capsys):
    monkeypatch.setattr(dev, "ways", lambda ways=dev.ways: {"first": no_disk} | ways())
    dev.prepare({"web"})
    told = capsys.readouterr().err
    assert f"first: making .venv failed; all of its output is in {dev.LOG}\nno disk\n" in told
    assert re.search(r"set up by bare in \d+ s", told)
    assert builds == [{"web"}]


def test_when_no_way_works_it_says_what_to_do(repository, monkeypatch):
    monkeypatch.setattr(dev, "ways", lambda: {"first": no_disk, "second": no_disk})
    with pytest.raises(SystemExit, match="no way of setting up worked"):
        dev.prepare({"web"})
    assert not dev.ENVIRONMENT.exists()
    assert json.loads(dev.STATE.read_text()) == {"made_for": "", "holds": ["web"]}


@pytest.mark.parametrize(
    ("means", "ways"),
    [
        ({"uv", "pip", "ensurepip"}, ["uv", "uv from pip", "venv and pip"]),
        ({"pip", "ensurepip"}, ["uv from pip", "venv and pip"]),
        ({"pip"}, ["uv from pip"]),
        ({"ensurepip"}, ["venv and pip"]),
        (set(), []),
    ],
    ids=str,
)
def test_only_ways_with_the_means_there_are_tried_quickest_first(monkeypatch, means, ways):
    monkeypatch.setattr(shutil, "which", lambda name: name in means)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name in means or None)
    assert list(dev.ways()) == ways


def test_a_warning_is_kept_in_the_log_but_not_shown(repository):
    dev.TOOLS.mkdir()
    with pytest.raises(dev.NotThisWay) as failure:
        dev.step("trying", sys.executable, "-c", "print('WARNING: old'); print('no room'); exit(1)")
    assert str(failure.value).splitlines()[1:] == ["no room"]
    assert "WARNING: old\nno room\n" in dev.LOG.read_text()


def test_a_tool_that_cannot_be_started_is_one_more_way_that_failed(repository):
    dev.TOOLS.mkdir()
    (dev.TOOLS / "torn").write_bytes(b"\x7fELF")
    (dev.TOOLS / "torn").chmod(0o755)
    with pytest.raises(dev.NotThisWay, match=r"trying failed; .*\n.*Exec format error"):
        dev.step("trying", dev.TOOLS / "torn")


def test_variables_for_pip_reach_uv_too_but_never_replace_its_own():
    given = {"PIP_INDEX_URL": "https://a.example", "PIP_CERT": "/pip.pem", "SSL_CERT_FILE": "/mine.pem"}
    assert dev.with_uv_names(given) == given | {"UV_DEFAULT_INDEX": "https://a.example"}


def test_all_steps_run_even_if_one_fails(repository, builds, capfd):
    dev.prepare({"web"})
    code = dev.run_all({"bad": ["-c", "exit(3)"], "good": ["-c", "print('still here')"]})
    printed = capfd.readouterr()
    assert code == 1
    assert "still here" in printed.out
    assert "bad: FAILED with 3" in printed.err
    assert "1 of 2 failed: bad" in printed.err


def test_the_exit_code_of_a_killed_child_is_that_of_a_shell(repository, builds):
    dev.prepare({"web"})
    assert dev.run("-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)") == 137


def test_being_asked_to_stop_is_passed_on_and_nothing_more_is_run(repository, builds, capfd):
    dev.prepare({"web"})
    ask = "import os, signal, threading; os.kill(os.getppid(), signal.SIGTERM); threading.Event().wait(60)"
    with pytest.raises(SystemExit) as stop:
        dev.run_all({"first": ["-c", ask], "second": ["-c", "print('still here')"]})
    assert stop.value.code == 143
    assert "still here" not in capfd.readouterr().out


def test_a_ctrl_c_lets_the_child_end_in_its_own_way(repository, builds):
    dev.prepare({"web"})
    with pytest.raises(SystemExit) as stop:
        dev.run("-c", "import os, signal; os.kill(os.getppid(), signal.SIGINT); exit(7)")
    assert stop.value.code == 7


def test_arguments_are_passed_on_as_they_are(repository, builds, capfd):
    package = repository / "treppe"
    package.mkdir()
    (package / "__main__.py").write_text("import sys; print(sys.argv[1:])")
    assert dev.main(["demo", "--orders", "200", "--json"]) == 0
    assert capfd.readouterr().out == "['demo', '--orders', '200', '--json']\n"


def no_disk(_holds: set[str]) -> None:
    dev.step("making .venv", sys.executable, "-c", "exit('no disk')")


def is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)
