"""What a task's end means, as a value: the outcome of what it returned or raised."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from treppe.app.arguments import readable
from treppe.app.endings import Ending
from treppe.job import Kind, Outcome
from treppe.settle import DONE
from treppe.store.text import clean

DOWN: Final = (ConnectionError, TimeoutError)
"""What means "the other side is down" if a task does not say otherwise; more are known by name."""

DOWN_BY_NAME: Final[Mapping[str, frozenset[str]]] = {
    "aiohttp": frozenset({"ClientConnectionError", "ServerTimeoutError"}),
    "httpx": frozenset({"TransportError"}),
    "requests": frozenset({"ConnectionError", "Timeout"}),
    "socket": frozenset({"gaierror"}),
    "ssl": frozenset({"SSLError"}),
    "urllib3": frozenset({"NewConnectionError", "ProtocolError", "SSLError", "TimeoutError"}),
}
"""Names of classes by the package they come from, so that nothing is imported for it."""

FRAMES: Final = 20
MAX_TRACEBACK: Final = 8000


def returned(result: Any) -> Outcome:
    """The outcome of a task that came to its end. The work is done, whatever can be kept of its result."""
    if result is None:
        return DONE
    if isinstance(result, Outcome):
        return msgspec.convert(msgspec.to_builtins(result, builtin_types=(bytes,)), Outcome, builtin_types=(bytes,))
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        return _never_ran(result)
    try:
        return Outcome(Kind.OK, result=msgspec.json.encode(result), acted=True)
    except Exception as error:  # whatever the result's own code raises when it is read
        note = {"note": f"the result was not kept, it is not JSON-like: {clean(text_of(error))}"}
        return Outcome(Kind.OK, detail=msgspec.json.encode(note), acted=True)


def raised(error: BaseException, safe: bool, down: tuple[type[BaseException], ...] | None = None) -> Outcome:
    """The outcome of a task that raised *error*. *safe*: the job may be repeated; *down* as in :func:`says_down`.

    >>> raised(ConnectionRefusedError("no"), safe=True).kind
    <Kind.DOWN: 'down'>
    >>> raised(ZeroDivisionError("division by zero"), safe=True).error
    'ZeroDivisionError: division by zero'
    """
    if isinstance(error, Ending):
        why = clean(text_of(error)) or type(error).__name__.lower()
        return Outcome(error.kind, why, after=error.after, acted=error.acted)
    # Of a task that must not be repeated nobody knows how far it came, whatever the error says about its last call.
    if safe and says_down(error, down):
        return Outcome(Kind.DOWN, _named(error), acted=False)
    return Outcome(Kind.FAILED, _named(error), detail=msgspec.json.encode({"traceback": _traceback_of(error)}))


def unfit(error: BaseException) -> Outcome:
    """The outcome of a job whose payload its task cannot take."""
    return Outcome(Kind.REFUSED, f"the arguments do not fit the task any more: {readable(error)}", acted=False)


def says_down(error: BaseException, kinds: tuple[type[BaseException], ...] | None = None) -> bool:
    """Does this exception mean that the other side is down? One that wraps another as its ``reason`` is looked into.

    >>> from urllib.error import URLError
    >>> says_down(URLError(ConnectionRefusedError())), says_down(URLError("unknown url type"))
    (True, False)
    """
    reason = getattr(error, "reason", None)
    if isinstance(error, kinds if kinds is not None else DOWN):
        return True
    if kinds is None and any(_is_known(kind) for kind in type(error).__mro__):
        return True
    return isinstance(reason, BaseException) and reason is not error and says_down(reason, kinds)


def text_of(error: BaseException) -> str:
    """The error's own text, also where asking for it fails."""
    try:
        return str(error)
    except BaseException:  # code of somebody else's
        return "(its text could not be read)"


def _never_ran(result: Any) -> Outcome:
    if inspect.iscoroutine(result) or inspect.isgenerator(result):
        result.close()
    kind = type(result).__name__
    error = f"it gave back a {kind} that nobody runs. Make the task an async function, or return a plain value"
    return Outcome(Kind.FAILED, error, acted=False)


def _named(error: BaseException) -> str:
    text = clean(text_of(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_known(kind: type) -> bool:
    return kind.__name__ in DOWN_BY_NAME.get(kind.__module__.partition(".")[0], ())


def _traceback_of(error: BaseException) -> str:
    """The last frames, where the fault is; the task's own code, not ours."""
    own = error.__traceback__.tb_next if error.__traceback__ else None
    lines = traceback.format_exception(type(error), error, own, limit=-FRAMES)
    return clean("".join(lines)[-MAX_TRACEBACK:], MAX_TRACEBACK)
