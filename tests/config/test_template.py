from pathlib import Path

import pytest

from treppe.config import Rate
from treppe.config.check import check
from treppe.config.load import load, read
from treppe.config.template import SECRETS, TEMPLATE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "treppe.toml"
    path.write_text(TEMPLATE, encoding="utf-8")
    return path


def test_the_first_settings_are_valid_once_two_secrets_are_set(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(path)
    for name in SECRETS:
        monkeypatch.setenv(name, "correct horse battery")
    assert [finding for finding in check(settings) if finding.level != "hint"] == []
    assert settings.queues["accounting"].rate == Rate(2, 1.0)
    assert settings.sources["shop"].send_to == ("invoice", "crm")


def test_nothing_but_these_two_secrets_is_missing_in_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.delenv(name, raising=False)
    errors = [finding.text for finding in check(load(path)) if finding.level == "error"]
    assert errors == [f"env:{name}: this environment variable is not set" for name in SECRETS]


def test_what_stands_there_as_a_comment_is_valid_too(path: Path) -> None:
    """Every commented setting is switched on, each in a file of its own."""
    lines = TEMPLATE.splitlines()
    tried = 0
    for number, line in enumerate(lines):
        setting = line.removeprefix("# ")
        if (
            line.startswith("# ")
            and " = " in setting
            and "[alert" not in setting
            and number < lines.index("# [alert.me]")
        ):
            path.write_text("\n".join([*lines[:number], setting, *lines[number + 1 :]]), encoding="utf-8")
            assert read(path)[1] == [], setting
            tried += 1
    assert tried > 15


def test_the_alert_that_stands_there_as_a_comment_is_valid_too(path: Path) -> None:
    before, alert, after = TEMPLATE.partition("# [alert.me]")
    rest, end, web = after.partition("\n\n\n")
    path.write_text(before + (alert + rest).replace("\n# ", "\n").removeprefix("# ") + end + web, encoding="utf-8")
    assert load(path).alerts["me"].sender == "treppe@example.com"
