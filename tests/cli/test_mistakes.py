"""The most likely mistakes of a new user. Each ends in a sentence with the cure, and stands in docs/mistakes.md."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli import support
from tests.cli.support import SETTINGS, Ran

Treppe = Callable[..., Ran]
DOCUMENT = Path(__file__).parents[2] / "docs" / "mistakes.md"


class Scene(NamedTuple):
    """Where a mistake is made."""

    folder: Path
    patch: pytest.MonkeyPatch
    later: ExitStack

    def settings(self, old: str, new: str) -> None:
        """Good settings with one thing changed."""
        assert old in SETTINGS
        (self.folder / "treppe.toml").write_text(SETTINGS.replace(old, new))


Prepare = Callable[[Scene], object]


class Mistake(NamedTuple):
    """What somebody did, what they call then, and what Treppe says."""

    did: str
    prepare: Prepare
    call: tuple[str, ...]
    code: int
    says: str


def changed(old: str, new: str) -> Prepare:
    return lambda scene: scene.settings(old, new)


def nothing_prepared(scene: Scene) -> None:
    support.waiting(scene.folder)


def no_settings(scene: Scene) -> None:
    (scene.folder / "treppe.toml").unlink()


def no_secret(scene: Scene) -> None:
    scene.patch.delenv("SHOP_SECRET")


def not_a_database(scene: Scene) -> None:
    (scene.folder / "treppe.db").write_text("name;price\nbolt;0.10\n")


def not_writable(scene: Scene) -> None:
    scene.patch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere


def locked(scene: Scene) -> None:
    from treppe.store.sqlite.database import Database

    support.waiting(scene.folder)
    scene.patch.setattr(Database.__init__, "__defaults__", (True, 0.05))
    other = scene.later.enter_context(closing(sqlite3.connect(scene.folder / "treppe.db", isolation_level=None)))
    other.execute("BEGIN IMMEDIATE")


def port_in_use(scene: Scene) -> None:
    taken = scene.later.enter_context(socket.create_server(("127.0.0.1", 0)))
    (scene.folder / "treppe.toml").write_text(f"{SETTINGS}\n[web]\nport = {taken.getsockname()[1]}\n")


@contextmanager
def closing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    finally:
        connection.close()


CHECK = ("check",)
ENQUEUE = ("enqueue", "destination:crm")
INVOICE = "https://accounting.example.com/v1/invoices"

MISTAKES = [
    Mistake(
        "no settings yet", no_settings, CHECK, 2, "treppe.toml: there is no such file. Make one with: treppe init"
    ),
    Mistake(
        "a setting misspelt", changed("rate =", "rat ="), CHECK, 1,
        'queue.accounting.rat: there is no setting "rat". Did you mean "rate"?',
    ),
    Mistake(
        "a text without quotes", changed('"2/s"', "2/s"), CHECK, 2, 'A text needs quotes: rate = "…"'
    ),
    Mistake(
        "a rate that cannot be read", changed('"2/s"', '"2 per second"'), CHECK, 1,
        '"2 per second" is not a rate. Write calls per time, e.g. "2/s", "100/min", "300/15s"',
    ),
    Mistake(
        "a duration without a unit", changed('repeat = "ask"', "timeout = 35"), CHECK, 1,
        'destination.invoice.timeout: 35 has no unit. Write it as text with a unit, e.g. "35s" or "35m"',
    ),
    Mistake(
        "two tables of one name", changed("[destination.crm]", "[destination.invoice]"), CHECK, 2,
        "A name can be used once only: rename one, or put both together",
    ),
    Mistake(
        "`send_to` names no destination", changed('"crm"]', '"crn"]'), CHECK, 1,
        'source.shop.send_to: there is no destination "crn". Did you mean "crm"?',
    ),
    Mistake(
        "`queue` names no queue", changed('queue = "accounting"', 'queue = "acounting"'), CHECK, 1,
        'destination.invoice.queue: there is no queue "acounting". Did you mean "accounting"?',
    ),
    Mistake(
        "the secret itself in the file", changed("env:SHOP_SECRET", "hunter2"), CHECK, 1,
        'a secret is named here, never written down. Write "env:NAME" and set the environment variable NAME',
    ),
    Mistake(
        "a secret that is not set", no_secret, CHECK, 1,
        "env:SHOP_SECRET: this environment variable is not set. Set it before the start: export SHOP_SECRET=…",
    ),
    Mistake(
        "a source without a way to tell who sends", changed('verify = { header = "X-Signature" }\n', ""), CHECK, 1,
        'nothing says how this sender signs. Add verify = { header = "X-Signature" }, or verify = "none"',
    ),
    Mistake(
        "a target without https", changed(INVOICE, "http://accounting.example.com"), CHECK, 1,
        "Use https, or add allow_http = true if everything between is yours",
    ),
    Mistake(
        "a target inside", changed(INVOICE, "https://10.1.2.3/invoices"), CHECK, 1,
        '10.1.2.3 is an address inside, where we send nothing by default. '
        'If that is meant, add allow_networks = ["10.1.2.3/32"]',
    ),
    Mistake(
        "a store that is none", changed("sqlite:///", "sqlite://"), CHECK, 1,
        '"sqlite://treppe.db" names no store. Write "sqlite:///treppe.db"',
    ),
    Mistake(
        "a password in the settings", changed("sqlite:///treppe.db", "postgresql://ada:hunter2@db/shop"), CHECK, 0,
        'the password is written down here. Keep it in ~/.pgpass, or write store = "env:DATABASE_URL"',
    ),
    Mistake(
        "a database server that is not there", changed("sqlite:///treppe.db", "postgresql://ada@127.0.0.1:1/shop"),
        ("status",), 3, "Try again in a moment, or see: treppe doctor",
    ),
    Mistake(
        "a store of a version to come", changed("sqlite:///treppe.db", "redis://cache/0"), CHECK, 1,
        'not available in this version: Redis as the store. Use store = "sqlite:///treppe.db" until then',
    ),
    Mistake(
        "a store in a folder that is not there", changed("sqlite:///", "sqlite:///data/"), CHECK, 1,
        "does not exist. Make it: mkdir -p",
    ),
    Mistake(
        "a store that is another file", not_a_database, CHECK, 1,
        "is not an SQLite database. Name another file; this one is left as it is",
    ),
    Mistake(
        "a store that may not be written", not_writable, CHECK, 1,
        "may not be written. Let the user that Treppe runs as read and write the file and its folder",
    ),
    Mistake(
        "a look before there is anything", lambda scene: None, ("status",), 3,
        "there is no store yet. The first treppe up, work or enqueue makes it",
    ),
    Mistake(
        "another program keeps the store locked", locked, ENQUEUE, 3,
        "database is locked. Try again in a moment, or see: treppe doctor",
    ),
    Mistake(
        "a port that is taken", port_in_use, ("up",), 2,
        "Choose another port, or stop what listens there",
    ),
    Mistake(
        "an app path without a variable", nothing_prepared, ("enqueue", "x", "--app", "shop.tasks"), 2,
        'app: "shop.tasks" names no app. Write "module:variable", e.g. "shop.tasks:app"',
    ),
    Mistake(
        "called in another folder than the app's", nothing_prepared, ("enqueue", "x", "--app", "shop_tasks:app"), 2,
        "Start treppe in the folder that holds it, or correct app = …",
    ),
    Mistake(
        "a task that is not there", nothing_prepared, ("enqueue", "destination:crn"), 1,
        'there is no task "destination:crn". Did you mean "destination:crm"?',
    ),
    Mistake(
        "an argument that is no JSON", nothing_prepared, (*ENQUEUE, "--arg", "to=ada"), 2,
        "A text needs quotes of its own: --arg 'to=\"ada\"'",
    ),
    Mistake(
        "a job that is not there", nothing_prepared, ("jobs", "show", "invoice:42"), 1,
        'there is no job "invoice:42". Look for it: treppe jobs ls',
    ),
    Mistake(
        "a command misspelt", nothing_prepared, ("statsu",), 2, 'there is no command "statsu". Did you mean "status"?'
    ),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.did.replace(" ", "-"))
def test_each_mistake_is_answered_with_its_cure(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch, mistake: Mistake
) -> None:
    with ExitStack() as later:
        mistake.prepare(Scene(folder, monkeypatch, later))
        ran = treppe(*mistake.call)
    assert mistake.says in ran.out + ran.err
    assert ran.code == mistake.code
    assert "Traceback" not in ran.err
    assert "hunter2" not in ran.out + ran.err


def test_the_document_lists_exactly_these_mistakes() -> None:
    rows = [line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("| ") and "`treppe" in line]
    assert rows == [row(mistake) for mistake in MISTAKES]


def row(mistake: Mistake) -> str:
    return f"| {mistake.did} | `treppe {mistake.call[0]}` | {mistake.code} | {mistake.says.replace('|', '&#124;')} |"
