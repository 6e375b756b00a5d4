"""A task's arguments as JSON: encoded when enqueued, checked against the annotations when decoded.

A payload that no longer fits ends the job with a path one can read: ``expected int, got str - at $.order_id``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, get_type_hints

import msgspec

from treppe.errors import InvalidJob, TreppeError


class Arguments:
    """The arguments of one function, without its context parameter."""

    def __init__(self, function: Callable[..., Any], takes_context: bool, task: str) -> None:
        self._task = task
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[1 if takes_context else 0 :]
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TreppeError(
                    f'task "{task}": the parameter "{parameter.name}" cannot be stored by name. '
                    "Use ordinary named parameters"
                )
        self._signature = signature.replace(parameters=parameters)
        self._shape = _shape_of(function, parameters, task)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """JSON of the bound arguments; InvalidJob when they do not fit the function."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidJob(f'task "{self._task}" cannot be called like that: {error}') from error
        try:
            payload = msgspec.json.encode(bound.arguments)
            self.decode(payload)
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            raise InvalidJob(f'task "{self._task}": an argument cannot be stored as it is: {error}') from error
        return payload

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The arguments by name; ``msgspec.ValidationError`` (a ValueError) when they do not fit any more."""
        value = msgspec.json.decode(payload, type=self._shape)
        return {name: getattr(value, name) for name in value.__struct_fields__}


def _shape_of(function: Callable[..., Any], parameters: list[inspect.Parameter], task: str) -> type[msgspec.Struct]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TreppeError(
            f'task "{task}": an annotation cannot be resolved: {error}. Import it where the module can see it'
        ) from error
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in parameters:
        hint = hints.get(parameter.name, Any)
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, msgspec.field(default_factory=partial(_given, parameter.default))))
    try:
        shape = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        msgspec.json.Decoder(shape)
    except TypeError as error:
        raise TreppeError(f'task "{task}": an annotation cannot be stored as JSON: {error}') from error
    return shape


def _given(default: Any) -> Any:
    return default
