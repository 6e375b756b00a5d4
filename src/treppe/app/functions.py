"""Which Python functions can be tasks, and what such a task is called."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any, Final

from treppe.errors import ConfigError

RESERVED: Final = "destination:"
"""Tasks named so are the built-in handlers of destinations."""


def refuse_no_task(function: Any) -> None:
    """ConfigError for what is no function, and for functions that cannot run as they are."""
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str) or not callable(function) or inspect.isclass(function):
        raise ConfigError("task", f"{function!r} is no function", 'Write one with def; settings go by name: name="…"')
    where = f'task "{name}"'
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(where, "a generator does nothing until somebody asks it", "Write a function without yield")
    first = next(iter(inspect.signature(function).parameters), "")
    if first in ("self", "cls"):
        cure = "Write a function outside of the class, or hand over a bound method: app.task(mailer.send)"
        raise ConfigError(where, f'it is a method, and its "{first}" cannot be stored', cure)


def name_of(function: Any) -> str:
    """The name of a function's task: module and name, the same in every process that imports it.

    ``__main__`` counts as the module it would be imported as, for that is what a worker does.

    >>> name_of(refuse_no_task)
    'treppe.app.functions.refuse_no_task'
    """
    name = function.__qualname__.replace(".<locals>", "")
    if "<lambda>" in name:
        raise ConfigError("task", "a lambda has no name of its own", "Write a function with def, or give name=")
    return f"{_module_of(function)}.{name}"


def name_given(name: Any) -> str:
    """A name of the user's choice, checked.

    >>> name_given("destination:crm")
    Traceback (most recent call last):
    treppe.errors.ConfigError: task "destination:crm": names that begin with "destination:" are taken. ...
    """
    if not (isinstance(name, str) and re.fullmatch(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}", name)):
        raise ConfigError("task", f"{name!r} is not a good name", "Use text of 1 to 255 characters without spaces")
    if name.startswith(RESERVED):
        raise ConfigError(f'task "{name}"', f'names that begin with "{RESERVED}" are taken', "Choose another")
    return name


def _module_of(function: Any) -> str:
    module = str(function.__module__)
    if module != "__main__":
        return module
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return str(spec.name) if spec else Path(file).stem if file else module
