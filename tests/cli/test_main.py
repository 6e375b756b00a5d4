import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import support
from tests.cli.support import Ran
from treppe.cli import code_of, main
from treppe.cli.house import who
from treppe.errors import ConfigError, Conflict, InvalidJob, NotFound, StoreUnavailable, Unsupported

Treppe = Callable[..., Ran]


def test_help_names_every_command_and_every_exit_code(treppe: Treppe) -> None:
    ran = treppe("--help")
    assert ran.code == 0
    listed = ran.out.partition("Commands:")[2].partition("Exit codes")[0]
    names = {line.split()[0] for line in listed.splitlines() if line.strip()}
    assert names >= {"init", "check", "up", "work", "drain", "status", "jobs", "dead", "queues", "enqueue", "demo"}
    for line in ("0    all is well", "1    something was", "2    wrong usage", "3    the store", "130  interrupted"):
        assert line in ran.out
    assert treppe("jobs", "-h").code == treppe("jobs", "ls", "-h").code == 0


def test_the_version_is_told(treppe: Treppe) -> None:
    assert treppe("--version").out.startswith("treppe 0.")


def test_python_can_run_it_as_a_module() -> None:
    command = [sys.executable, "-m", "treppe", "check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "treppe.toml is fine\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("statsu",), 'there is no command "statsu". Did you mean "status"?'),
        (("jobs", "lst"), 'there is no command "lst". Did you mean "ls"?'),
        (("xyzzy",), "No such command 'xyzzy'"),
        (("check", "--jsn"), "Did you mean"),
        (("jobs", "show"), "Missing argument 'ID'"),
    ],
)
def test_wrong_usage_is_answered_with_the_way_out(treppe: Treppe, arguments: tuple[str, ...], sentence: str) -> None:
    ran = treppe(*arguments)
    assert ran.code == 2
    assert sentence in ran.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("web.port", "bad"), 2),
        (InvalidJob("bad"), 2),
        (Unsupported("no"), 2),
        (StoreUnavailable("busy"), 3),
        (NotFound("job", "x"), 1),
        (Conflict("x", "queue"), 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert code_of(error) == code  # type: ignore[arg-type]


def raising(error: BaseException) -> Callable[..., None]:
    def raises(*arguments: object, **options: object) -> None:
        raise error

    return raises


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "treppe: stopped\n"),
        (PermissionError(errno.EACCES, "no", "/etc/x"), 2, "/etc/x: no permission. Run this as the user"),
        (ModuleNotFoundError("no", name="uvicorn.server"), 2, 'extra "web". Install it: pip install "treppe[web]"'),
        (StoreUnavailable("the file is busy"), 3, "the file is busy. Try again in a moment, or see: treppe doctor\n"),
    ],
)  # fmt: skip
def test_what_goes_wrong_ends_in_one_sentence(
    treppe: Treppe, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, sentence: str
) -> None:
    monkeypatch.setattr("treppe.config.load.read", raising(error))
    ran = treppe("check")
    assert ran.code == code
    assert sentence in ran.err


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "the disk is broken"), ModuleNotFoundError("no", name="numpy"), KeyError()]
)
def test_our_own_faults_are_not_dressed_up(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr("treppe.config.load.read", raising(error))
    with pytest.raises(type(error)):
        main(["check"])


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    support.waiting(folder, *(f"job-{n}" for n in range(400)))
    command = [sys.executable, "-m", "treppe", "jobs", "ls", "-n", "400", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) in (0, 1)


def test_who_acts_is_asked_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert who() != "somebody-else"
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    assert who() == "user 4000000"


def test_the_demonstration_gets_its_own_arguments(treppe: Treppe, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def demo(arguments: list[str]) -> int:
        seen.append(arguments)
        return 1

    monkeypatch.setattr("treppe.demo.main", demo)
    assert treppe("demo", "--orders", "50", "--json", "--help", "-c", "x").code == 1
    assert seen == [["--orders", "50", "--json", "--help", "-c", "x"]]
