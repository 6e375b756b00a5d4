import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.support import SETTINGS, Ran
from treppe.cli import main

Treppe = Callable[..., Ran]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with good settings, in which treppe is called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREPPE_CONFIG", raising=False)
    monkeypatch.delenv("TREPPE_APP", raising=False)
    monkeypatch.setenv("SHOP_SECRET", "correct-horse-battery")
    monkeypatch.setenv("BOARD_PASSWORD", "correct-horse-battery")
    (tmp_path / "treppe.toml").write_text(SETTINGS, encoding="utf-8")
    return tmp_path


@pytest.fixture(autouse=True)
def the_log_stays_ours() -> Iterator[None]:
    """What runs in the test's own process sets up a log; afterwards it is as before."""
    root, handlers, level = logging.getLogger(), logging.getLogger().handlers[:], logging.getLogger().level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("uvicorn").setLevel(logging.NOTSET)


@pytest.fixture
def treppe(capsys: pytest.CaptureFixture[str]) -> Treppe:
    """Calls the command line as a shell would, and returns what it left behind."""

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        return Ran(code, *capsys.readouterr())

    return call
