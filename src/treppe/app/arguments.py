"""A task's arguments as JSON: checked against the annotations when enqueued, and again when they are used.

A payload that no longer fits says where: ``Expected int, got str at order``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, get_type_hints

import msgspec

from treppe.app.context import Context
from treppe.errors import ConfigError, InvalidJob

Parameters = list[inspect.Parameter]


class Arguments:
    """The arguments of one function, without its context parameter."""

    def __init__(self, function: Callable[..., Any], task: str) -> None:
        self._task = task
        signature = inspect.signature(function)
        hints = _hints_of(function, task)
        given = list(signature.parameters.values())
        self.takes_context = bool(given) and hints.get(given[0].name) is Context
        parameters = given[1:] if self.takes_context else given
        _refuse_unstorable(parameters, hints, task)
        self.names = frozenset(parameter.name for parameter in parameters)
        self._order = tuple(parameter.name for parameter in parameters)
        self._by_place = sum(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
        self._needed = {parameter.name for parameter in parameters if parameter.default is parameter.empty}
        self._least = max((self._order.index(name) + 1 for name in self._needed), default=0)
        self._signature = signature.replace(parameters=parameters)
        self._decoder = msgspec.json.Decoder(_shape_of(parameters, hints))

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """JSON of the arguments of one call; InvalidJob when they do not fit the function."""
        arguments = self._by_name(args, kwargs)
        try:
            payload = msgspec.json.encode(arguments)
            self._decoder.decode(payload)
        except RecursionError as error:  # its own text is another one in each Python
            raise InvalidJob(f'task "{self._task}": an argument holds itself, or is nested too deeply') from error
        except (TypeError, ValueError) as error:
            raise InvalidJob(f'task "{self._task}": an argument cannot be stored: {readable(error)}') from error
        return payload

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The arguments by name, defaults included; ``ValueError`` when they do not fit (any more)."""
        value = self._decoder.decode(payload)
        return {name: getattr(value, name) for name in self._order}

    def _by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments in the order of the parameters. Python's own way is asked only about mistakes: it is slow."""
        given = dict(zip(self._order, args, strict=False))
        if not kwargs and self._least <= len(args) <= self._by_place:
            return given
        given.update(kwargs)
        no_twice = len(given) == len(args) + len(kwargs) and len(args) <= self._by_place
        if no_twice and given.keys() >= self._needed and given.keys() <= self.names:
            return {name: given[name] for name in self._order if name in given}
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidJob(f'task "{self._task}" cannot be called like that: {error}') from error


def readable(error: BaseException) -> str:
    """What does not fit, and where, without the signs that only programmers read.

    >>> readable(ValueError("Expected `int`, got `str` - at `$.order.lines[0].n`"))
    'Expected int, got str at order.lines[0].n'
    """
    return re.sub(r" - at \$\.?", " at ", str(error).replace("`", ""))


def _hints_of(function: Callable[..., Any], task: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        cure = "Import it where the module can see it while it runs, not only under TYPE_CHECKING"
        raise ConfigError(f'task "{task}"', f"an annotation cannot be resolved: {error}", cure) from error


def _refuse_unstorable(parameters: Parameters, hints: dict[str, Any], task: str) -> None:
    for parameter in parameters:
        where, hint = f'task "{task}": {parameter.name}', hints.get(parameter.name, Any)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(where, "this parameter cannot be stored by its name", "Use ordinary named parameters")
        if hint is Context:
            raise ConfigError(where, "the context must be the first parameter", f"Move {parameter.name} to the front")
        _refuse_unstorable_type(_kind_of(hint), where)


def _refuse_unstorable_type(hint: Any, where: str) -> None:
    """Unknown types are fine for a decoder until it meets one; the schema is where they are refused at once."""
    try:
        msgspec.json.Decoder(hint)
        msgspec.json.schema(hint)
    except (TypeError, NameError) as error:
        problem = str(error).strip().splitlines()[-1].removeprefix("type ").replace("`", "")
        cure = "Use what JSON can hold: str, int, list, dict, datetime, Decimal, UUID, Enum, a dataclass, a Struct …"
        raise ConfigError(where, f"its type cannot be stored: {problem}", cure) from error


def _shape_of(parameters: Parameters, hints: dict[str, Any]) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in parameters:
        hint = _kind_of(hints.get(parameter.name, Any))
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, msgspec.field(default_factory=partial(_given, parameter.default))))
    return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _kind_of(hint: Any) -> Any:
    return Any if hint is object else hint


def _given(default: Any) -> Any:
    return default
