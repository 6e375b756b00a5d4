import os
from pathlib import Path

import pytest

from treppe.config import Settings
from treppe.config.finding import Finding
from treppe.config.rules import store


def told(settings: Settings) -> list[str]:
    return [str(finding) for finding in store.findings(settings)]


def test_a_new_file_in_a_folder_that_is_there_is_fine(tmp_path: Path) -> None:
    assert told(Settings(f"sqlite:///{tmp_path}/treppe.db")) == []


def test_an_sqlite_database_and_an_empty_file_are_fine(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    (tmp_path / "full.db").write_bytes(b"SQLite format 3\0" + bytes(84))
    assert told(Settings(f"sqlite:///{tmp_path}/empty.db")) == told(Settings(f"sqlite:///{tmp_path}/full.db")) == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing/treppe.db", "does not exist. Make it: mkdir -p"),
        ("folder", "is a folder. Name a file in it, e.g. treppe.db"),
        ("notes.txt", "is not an SQLite database. Name another file; this one is left as it is"),
    ],
)
def test_a_place_that_cannot_hold_a_store_is_an_error(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("buy milk")
    (found,) = store.findings(Settings(f"sqlite:///{tmp_path}/{name}"))
    assert (found.level, found.where) == ("error", "store")
    assert sentence in str(found)


def test_a_file_that_may_not_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    (found,) = told(Settings(f"sqlite:///{tmp_path}/treppe.db"))
    assert "may not be written. Let the user that Treppe runs as read and write the file and its folder" in found


def test_an_unknown_store_is_an_error_and_nothing_else_is_looked_at() -> None:
    (found,) = told(Settings("redis://h"))
    assert found.startswith("store: not available in this version: Redis as the store")


def test_a_database_server_is_fine_and_not_asked() -> None:
    assert told(Settings("postgresql://app@nowhere.example/shop")) == []


def test_a_password_that_is_written_down_is_a_hint() -> None:
    (found,) = store.findings(Settings("postgresql://app:hunter2@db.example/shop"))
    assert found.level == "hint"
    assert "Keep it in ~/.pgpass" in str(found)
    assert "hunter2" not in str(found)


def test_a_server_without_its_driver_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "find_spec", lambda name: None)
    (found,) = told(Settings("postgresql://app@db.example/shop"))
    assert found.endswith('PostgreSQL needs its driver. Run: pip install "treppe[postgres]"')


def mounts(folder: Path, kind: str) -> Path:
    path = folder / "mounts"
    lines = [
        "rootfs / ext4 rw 0 0",
        f"x {folder}/a\\040b {kind} rw 0 0".replace(str(folder), str(folder.resolve())),
        "odd",
    ]
    path.write_text("\n".join(lines))
    return path


def test_the_kind_of_disk_is_the_nearest_mount(tmp_path: Path) -> None:
    table = mounts(tmp_path, "nfs4")
    assert store.disk_kind(tmp_path / "a b" / "treppe.db", table) == "nfs4"
    assert store.disk_kind(tmp_path / "treppe.db", table) == "ext4"
    assert store.disk_kind(tmp_path / "treppe.db", tmp_path / "nothing here") == ""


@pytest.mark.parametrize(("kind", "level"), [("nfs4", "error"), ("cifs", "error"), ("tmpfs", "warning")])
def test_a_disk_that_is_not_fit_is_told(tmp_path: Path, kind: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "disk_kind", lambda path: kind)
    found: list[Finding] = list(store.findings(Settings(f"sqlite:///{tmp_path}/treppe.db")))
    assert [finding.level for finding in found] == [level]
