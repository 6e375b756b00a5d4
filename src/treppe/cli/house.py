"""What commands work with: the settings, the app, the store. Each is opened when it is first needed."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from treppe.config import Settings
from treppe.config.parse import store_file
from treppe.config.words import did_you_mean
from treppe.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from treppe.app import Treppe
    from treppe.store.protocol import Store

DEFAULT = "treppe.toml"


class House:
    """One call of ``treppe``. ``file`` and ``app_path`` are what the user said, or None."""

    def __init__(self) -> None:
        self.file: str | None = None
        self.app_path: str | None = None

    @property
    def path(self) -> Path:
        """The settings file."""
        return Path(self.file or DEFAULT)

    @cached_property
    def settings(self) -> Settings:
        """The settings; with ``--app`` there may be no file, and the defaults hold."""
        from treppe.config.load import load

        if self.without_file:
            return Settings(app=self.app_path)
        settings = load(self.path)
        return replace(settings, app=self.app_path) if self.app_path else settings

    @cached_property
    def app(self) -> Treppe | None:
        """The Python app with its tasks, imported now; None where there is none."""
        folders = [Path.cwd(), self.path.absolute().parent]
        return None if self.settings.app is None else load_app(self.settings.app, folders)

    @property
    def tasks(self) -> list[str]:
        """What a worker of this house would carry out: the app's tasks, and the destinations."""
        destinations = [destination.task for destination in self.settings.destinations.values()]
        return [*(self.app.tasks if self.app else ()), *destinations]

    @property
    def without_file(self) -> bool:
        """True when there is only an app, which brings its own store."""
        return self.app_path is not None and self.file is None and not self.path.exists()

    @contextmanager
    def store(self, make: bool = False, migrate: bool = True) -> Iterator[Store]:
        """The store, for one command. Only with *make* one that is not there yet is made."""
        from treppe.app import open_store

        if self.without_file and self.app is not None:
            store: Store = self.app.store
        else:
            path = store_file(self.settings.store)
            if not (make or path is None or path.exists()):
                raise StoreError(f"{path}: there is no store yet. The first treppe up, work or enqueue makes it")
            store = open_store(self.settings.store, migrate=migrate)
        try:
            yield store
        finally:
            store.close()


house = click.make_pass_decorator(House, ensure=True)
"""Hands the house to a command."""


def who() -> str:
    """The name of the user at this terminal, for the audit: from the system, never from the environment."""
    try:
        import pwd
    except ImportError:  # Windows
        import getpass

        return getpass.getuser()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def load_app(path: str, folders: list[Path]) -> Treppe:
    """The app at ``module:variable``; ConfigError when it cannot be imported or is none."""
    from treppe.app import Treppe

    name, _, variable = path.partition(":")
    if not (name and variable):
        raise ConfigError("app", f'"{path}" names no app', 'Write "module:variable", e.g. "shop.tasks:app"')
    module = _import(name, [str(folder) for folder in folders])
    found = getattr(module, variable, None)
    if isinstance(found, Treppe):
        return found
    apps = [each for each, value in vars(module).items() if isinstance(value, Treppe)]
    problem = f'{name} has no "{variable}"' if found is None else f'"{variable}" in {name} is no Treppe app'
    raise ConfigError("app", problem, did_you_mean(variable, apps, f"Make one: {variable} = Treppe(…)"))


def _import(name: str, folders: list[str]) -> object:
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            cure = "Start treppe in the folder that holds it, or correct app = …"
            raise ConfigError(
                "app", f'there is no module "{error.name}" in {" or ".join(folders[:2])}', cure
            ) from error
        raise ConfigError("app", _failed(name, error), "Install what it needs, in the same environment") from error
    except Exception as error:  # an import runs whatever is in the module
        raise ConfigError("app", _failed(name, error), "Correct the module; it must be importable by itself") from error


def _failed(name: str, error: Exception) -> str:
    """Why an import failed, with the line of the user's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"importing {name} failed: {type(error).__name__}: {error}{place}"
