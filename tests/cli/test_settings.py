import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import support
from tests.cli.support import Ran
from treppe.config.template import TEMPLATE

Treppe = Callable[..., Ran]


def test_init_writes_settings_that_are_good_once_two_secrets_are_set(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "treppe.toml").unlink()
    ran = treppe("init")
    assert ran.code == 0
    for name in ("SHOP_SECRET", "BOARD_PASSWORD"):
        assert f"export {name}=…" in ran.out
    assert treppe("check").code == 0
    monkeypatch.delenv("SHOP_SECRET")
    assert treppe("check").code == 1


def test_init_writes_to_the_file_that_is_named(folder: Path, treppe: Treppe) -> None:
    assert treppe("init", "-c", "other.toml").code == 0
    assert (folder / "other.toml").read_text("utf-8") == TEMPLATE


def test_init_overwrites_nothing_without_being_told(folder: Path, treppe: Treppe) -> None:
    ran = treppe("init")
    assert (ran.code, ran.err) == (
        2,
        "treppe: treppe.toml: this file is there already. Overwrite it: treppe init --force\n",
    )
    assert (folder / "treppe.toml").read_text() == support.SETTINGS
    assert treppe("init", "--force").code == 0
    assert (folder / "treppe.toml").read_text("utf-8") == TEMPLATE


def test_init_makes_no_folders(treppe: Treppe) -> None:
    assert "its folder does not exist. Make it: mkdir -p no/such" in treppe("-c", "no/such/treppe.toml", "init").err


def test_good_settings_are_fine(treppe: Treppe) -> None:
    assert treppe("check") == (0, "", "treppe.toml is fine\n")


def test_what_the_rules_find_is_told_with_its_line(folder: Path, treppe: Treppe) -> None:
    text = support.SETTINGS.replace("https://crm.example.com", "http://crm.example.com")
    (folder / "treppe.toml").write_text(text)
    ran = treppe("check")
    assert ran.code == 1
    assert ran.out.startswith("error    line 18, destination.crm.url: http sends everything readable")
    assert ran.err == "treppe.toml: 1 error\n"
    assert json.loads(treppe("check", "--json").out)["findings"][0]["line"] == 18


def test_what_cannot_be_read_is_told_in_the_same_way(folder: Path, treppe: Treppe) -> None:
    (folder / "treppe.toml").write_text("[web]\nprot = 1\nhots = 2\n")
    ran = treppe("check")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        'error    line 2, web.prot: there is no setting "prot". Did you mean "port"?',
        'error    line 3, web.hots: there is no setting "hots". Did you mean "host"?',
    ]
    assert json.loads(treppe("check", "--json").out)["errors"] == 2


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ('where = "body:total >"', '"body:total >" is not a test'),
        ('only = ["orders/paid"]', 'preset = "generic" does not know topics'),
    ],
)
def test_what_only_the_door_knows_is_found_before_it_opens(
    folder: Path, treppe: Treppe, setting: str, sentence: str
) -> None:
    text = support.SETTINGS.replace('send_to = ["invoice", "crm"]', f'send_to = ["invoice", "crm"]\n{setting}')
    (folder / "treppe.toml").write_text(text)
    ran = treppe("check")
    assert ran.code == 1
    assert "line 11, source.shop." in ran.out
    assert sentence in ran.out


def test_an_app_that_cannot_be_imported_is_found_before_the_start(folder: Path, treppe: Treppe) -> None:
    (folder / "treppe.toml").write_text('app = "no_such_shop.tasks:app"\n' + support.SETTINGS)
    ran = treppe("check")
    assert ran.code == 1
    assert ran.out.startswith('error    app: there is no module "no_such_shop"')


def test_a_hint_is_no_error(folder: Path, treppe: Treppe) -> None:
    (folder / "treppe.toml").write_text(support.SETTINGS.replace('repeat = "ask"\n', ""))
    ran = treppe("check")
    assert ran.code == 0
    assert ran.out.startswith("hint     line 12, destination.invoice.repeat: after a time-out nobody knows")


def test_the_settings_can_be_named_before_and_after_the_command_and_in_the_environment(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "treppe.toml").rename(folder / "shop.toml")
    assert treppe("check").code == 2
    assert treppe("-c", "shop.toml", "check").code == 0
    assert treppe("check", "--config", "shop.toml").code == 0
    monkeypatch.setenv("TREPPE_CONFIG", str(folder / "shop.toml"))
    assert treppe("check").code == 0
    assert treppe("-c", "none.toml", "check").code == 2


def test_migrate_makes_the_tables_once(folder: Path, treppe: Treppe) -> None:
    assert "applied 0001" in treppe("migrate").out
    assert treppe("migrate") == (0, "the store is up to date\n", "")
    assert json.loads(treppe("migrate", "--json").out) == {"applied": []}


def levels(treppe: Treppe) -> dict[str, str]:
    return {result["name"]: result["level"] for result in json.loads(treppe("doctor", "--json").out)["results"]}


def test_the_doctor_finds_a_good_house_in_order(folder: Path, treppe: Treppe) -> None:
    support.waiting(folder, "a")
    ran = treppe("doctor")
    assert ran.code == 0
    assert "ok    store: answers in " in ran.out
    assert "ok    durability: every answer waits for the disk" in ran.out
    assert levels(treppe).keys() >= {"python", "sqlite", "extra web", "extra deliver", "settings", "disk", "open files"}
    assert "fail" not in levels(treppe).values()


def test_the_doctor_looks_at_a_store_that_is_not_there_yet(folder: Path, treppe: Treppe) -> None:
    assert "ok    store: " in treppe("doctor").out
    assert not (folder / "treppe.db").exists()


def test_the_doctor_names_what_is_wrong_and_the_cure(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_SECRET")
    (folder / "treppe.db").write_text("this is no database, but a letter to my aunt")
    ran = treppe("doctor")
    assert ran.code == 1
    assert "fail  settings: line 7, source.shop.secret: env:SHOP_SECRET" in ran.out
    assert "      Set it before the start: export SHOP_SECRET=…" in ran.out
    assert "fail  store: " in ran.out


def test_the_doctor_looks_at_the_machine_without_settings(folder: Path, treppe: Treppe) -> None:
    (folder / "treppe.toml").unlink()
    found = levels(treppe)
    assert (found["settings"], found["python"]) == ("fail", "ok")


def test_the_doctor_warns_before_the_limits_are_reached(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 4096))
    monkeypatch.setattr("treppe.cli.doctor.shutil.disk_usage", lambda path: _Usage(100, 4))
    monkeypatch.setattr("treppe.cli.doctor.find_spec", lambda name: None)
    monkeypatch.setattr("treppe.cli.doctor.disk_kind", lambda path: "overlay")
    ran = treppe("doctor")
    assert "warn  open files: only 256 allowed\n      Raise it to 756 (ulimit -n 756)" in ran.out
    assert "fail  disk: 4% free" in ran.out
    assert "warn  disk: the store lies in a container and goes with it" in ran.out
    assert "warn  extra web: " in ran.out
    assert 'pip install "treppe[web]"' in ran.out


class _Usage:
    def __init__(self, total: int, free: int) -> None:
        self.total, self.free = total << 20, free << 20


def test_the_doctor_notices_a_wrong_clock(folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch) -> None:
    support.waiting(folder)
    now = time.time
    monkeypatch.setattr("treppe.cli.doctor.time.time", lambda: 86400.0 * 365)
    assert "fail  clock: this machine believes it is" in treppe("doctor").out
    monkeypatch.setattr("treppe.cli.doctor.time.time", lambda: now() + 60)
    assert "warn  clock: the store's clock and ours differ by " in treppe("doctor").out


def test_the_doctor_notices_a_slow_store(folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch) -> None:
    support.waiting(folder)
    monkeypatch.setattr("treppe.cli.doctor.SLOW", 0.0)
    assert "warn  store: answers in " in treppe("doctor").out


def test_the_doctor_knows_what_is_too_old_or_unlimited(treppe: Treppe, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource
    import sqlite3
    import sys

    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    ran = treppe("doctor")
    assert "fail  python: 3.10.4\n      Install Python 3.11 or newer" in ran.out
    assert "fail  sqlite: " in ran.out
    assert "ok    open files: any number allowed" in ran.out


def test_the_doctor_goes_on_where_the_store_is_nowhere(folder: Path, treppe: Treppe) -> None:
    (folder / "treppe.toml").write_text(support.SETTINGS.replace("sqlite:///", "sqlite:///no/such/"))
    found = levels(treppe)
    assert found["settings"] == "fail"
    assert "disk" not in found
