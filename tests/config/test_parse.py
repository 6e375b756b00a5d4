import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.config import Rate, Secret, parse
from treppe.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("0s", 0.0),
        ("35s", 35.0),
        ("1.5s", 1.5),
        ("15m", 900.0),
        ("15min", 900.0),
        ("1h30m", 5400.0),
        ("14d", 14 * 86400.0),
        ("2w", 14 * 86400.0),
        (" 2s ", 2.0),
    ],
)
def test_a_duration_is_read_with_its_units(text: str, seconds: float) -> None:
    assert parse.duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "15",
        "15x",
        "-15s",
        "1m1m",
        "30m1h",
        "1 h",
        "15s!",
        "٣s",
        "1e3s",
        "9" * 40 + "s",
        None,
        True,
        [],
        "1..5s",
    ],
)
def test_what_is_no_duration_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ConfigError, match=r"is not a duration.*35s"):
        parse.duration(text)


@pytest.mark.parametrize("value", [30, 0.5])
def test_a_bare_number_is_asked_for_its_unit(value: float) -> None:
    with pytest.raises(ConfigError, match=f'{value} has no unit.*"{value}s"'):
        parse.duration(value)


def test_a_duration_out_of_bounds_names_the_bounds() -> None:
    assert parse.duration("1s", least=1.0, most=60.0) == 1.0
    assert parse.duration("1m", least=1.0, most=60.0) == 60.0
    for text in ("999ms", "61s"):
        with pytest.raises(ConfigError, match="Choose one from 1s to 1m"):
            parse.duration(text, least=1.0, most=60.0)


@given(st.integers(0, 400 * 86_400_000))
def test_a_duration_said_to_people_reads_back_as_the_same(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse.duration(parse.say_duration(seconds)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("2/s", Rate(2, 1.0)),
        ("300/15s", Rate(300, 15.0)),
        ("100/min", Rate(100, 60.0)),
        ("1000/h", Rate(1000, 3600.0)),
        ("1/1m30s", Rate(1, 90.0)),
        (" 5 / 250ms ", Rate(5, 0.25)),
    ],
)
def test_a_rate_is_read_as_calls_per_window(text: str, rate: Rate) -> None:
    assert parse.rate(text) == rate


@pytest.mark.parametrize("text", ["", "2", "2/", "/s", "2/x", "2.5/s", "-2/s", "2 per s", 2, None, "2/s/s"])
def test_what_is_no_rate_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ConfigError, match=r"is not a rate.*300/15s"):
        parse.rate(text)


@pytest.mark.parametrize("text", ["0/s", "1000001/s", "1/32d", "2/0s"])
def test_a_rate_out_of_bounds_names_the_bounds(text: str) -> None:
    with pytest.raises(ConfigError, match="1 to 1000000 calls per 1ms to 31d"):
        parse.rate(text)


@given(st.integers(1, 1_000_000), st.sampled_from([0.25, 1.0, 15.0, 60.0, 3600.0, 5400.0, 86400.0]))
def test_a_rate_said_to_people_reads_back_as_the_same(n: int, per: float) -> None:
    assert parse.rate(parse.say_rate(Rate(n, per))) == Rate(n, per)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("5MiB", 5 << 20),
        ("5 MiB", 5 << 20),
        ("1KiB", 1024),
        ("1kB", 1000),
        ("1MB", 10**6),
        ("1GiB", 1 << 30),
        ("7B", 7),
    ],
)
def test_a_size_is_read_in_bytes(text: str, size: int) -> None:
    assert parse.size(text) == size


@pytest.mark.parametrize("text", ["", "5", "5M", "5mib", "MiB", "-5MiB", "1.5MiB", 5, None])
def test_what_is_no_size_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ConfigError, match=r"is not a size.*5MiB"):
        parse.size(text)


def test_a_size_out_of_bounds_names_the_bounds() -> None:
    for text in ("1023B", "2KiB"):
        with pytest.raises(ConfigError, match="Choose one from 1024 to 2000 bytes"):
            parse.size(text, least=1024, most=2000)


@pytest.mark.parametrize("value", ["1", True, None, 1.5, 0, 11, [1]])
def test_a_whole_number_is_whole_and_within_bounds(value: object) -> None:
    with pytest.raises(ConfigError):
        parse.whole(value, 1, 10)


@pytest.mark.parametrize("value", ["1.5", False, None, 0.9, 10.1, float("nan"), float("inf")])
def test_a_number_is_within_bounds(value: object) -> None:
    with pytest.raises(ConfigError):
        parse.number(value, 1.0, 10.0)


@pytest.mark.parametrize(
    "text", ["", "s3cret-value", "env:", "env:1A", "env:A B", "file:", "plain:", "s3cret:x", 7, None, "file:a\0b"]
)
def test_what_is_no_reference_to_a_secret_is_refused_and_never_shown(text: object) -> None:
    with pytest.raises(ConfigError) as caught:
        parse.secret(text)
    assert "s3cret" not in str(caught.value)
    assert "e.g. env:SHOP_SECRET" in str(caught.value) or 'Write "env:NAME"' in str(caught.value)


def test_a_relative_file_of_a_secret_is_looked_for_in_the_folder() -> None:
    assert parse.secret("file:key", Path("/etc/treppe")) == Secret("file:/etc/treppe/key")
    assert parse.secret("file:/run/key", Path("/etc/treppe")) == Secret("file:/run/key")


def test_a_secret_is_read_late_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = parse.secret("env:SOME_SECRET")
    monkeypatch.setenv("SOME_SECRET", "first")
    assert parse.open_secret(secret) == b"first"
    monkeypatch.setenv("SOME_SECRET", "second\n")
    assert parse.open_secret(secret) == b"second"


def test_a_secret_that_is_not_set_says_how_to_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_SECRET", raising=False)
    with pytest.raises(ConfigError, match=r"env:SOME_SECRET: .*not set.*export SOME_SECRET="):
        parse.open_secret(Secret("env:SOME_SECRET"))


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"abc", b"abc"),
        (b"abc\n", b"abc"),
        (b"abc\r\n", b"abc"),
        (b"abc\n\n", b"abc\n"),
        (b" a b ", b" a b "),
        (b"\xff", b"\xff"),
    ],
)
def test_a_secret_in_a_file_loses_one_newline_and_nothing_else(tmp_path: Path, content: bytes, value: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    assert parse.open_secret(Secret(f"file:{tmp_path}/key")) == value


def test_a_secret_of_the_longest_length_is_read_and_a_longer_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"x" * parse.MAX_SECRET + b"\r\n")
    assert len(parse.open_secret(Secret(f"file:{tmp_path}/key"))) == parse.MAX_SECRET
    (tmp_path / "key").write_bytes(b"x" * (parse.MAX_SECRET + 1))
    with pytest.raises(ConfigError, match="longer than 65536 bytes"):
        parse.open_secret(Secret(f"file:{tmp_path}/key"))


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_an_empty_secret_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(ConfigError, match="this secret is empty"):
        parse.open_secret(Secret(f"file:{tmp_path}/key"))


def test_a_file_that_is_missing_or_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"file:{tmp_path}/no: .*No such file.*Check the path"):
        parse.open_secret(Secret(f"file:{tmp_path}/no"))
    with pytest.raises(ConfigError, match="this is not a file"):
        parse.open_secret(Secret(f"file:{tmp_path}"))


def test_a_pipe_is_no_file_so_that_nothing_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="this is not a file"):
        parse.open_secret(Secret(f"file:{tmp_path}/pipe"))


def test_a_secret_is_never_shown() -> None:
    secret = Secret("plain:hunter2")
    assert parse.open_secret(secret) == b"hunter2"
    assert "hunter2" not in f"{secret!r} {secret!s} {secret.__rich_repr__()} {Rate(1, 1.0)}"
    with pytest.raises(ConfigError) as caught:
        parse.open_secret(Secret("plain:" + "hunter2" * 10_000))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("store", "path"),
    [
        ("sqlite:///treppe.db", "treppe.db"),
        ("sqlite:///a/b.db", "a/b.db"),
        ("sqlite:////var/t.db", "/var/t.db"),
        ("SQLite:///t.db", "t.db"),
    ],
)
def test_the_file_of_a_store_is_what_follows_three_slashes(store: str, path: str) -> None:
    assert parse.store_file(store) == Path(path)


@pytest.mark.parametrize(
    "store", ["postgresql://h/d", "postgres://h", "PostgreSQL://me:pw@[::1]:5433/d?sslmode=require", "postgresql:///d"]
)
def test_a_store_behind_a_server_has_no_file(store: str) -> None:
    assert parse.store_file(store) is None


@pytest.mark.parametrize(
    "store",
    [
        "",
        "treppe.db",
        "/var/lib/treppe.db",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite:treppe.db",
        "sqlite://treppe.db",
        "sqlite:///:memory:",
        "sqlite:///a?b=1",
        "sqlite:///a/",
        "mysql://h/d",
        "postgresql://",
        "postgresql:h/d",
        "postgresql+psycopg://h/d",
        "postgresql://h/a b",
    ],
)
def test_what_is_no_store_is_refused_with_an_example(store: str) -> None:
    with pytest.raises(ConfigError, match=r"names no store\. Write \"sqlite:///treppe.db\""):
        parse.store_file(store)


@pytest.mark.parametrize("store", ["redis://h", "valkey://h", "postgresql+sqs://h", "sqs://q"])
def test_a_store_of_a_version_to_come_is_named_as_such(store: str) -> None:
    with pytest.raises(ConfigError, match="not available in this version"):
        parse.store_file(store)


def test_the_password_of_a_store_is_never_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        parse.store_file("mysql://me:hunter2@host/db")
    assert "hunter2" not in str(caught.value)
