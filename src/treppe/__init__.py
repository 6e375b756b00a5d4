"""Treppe: a durable job queue and webhook buffer.

::

    from treppe import Treppe

    app = Treppe("sqlite:///shop.db")

    @app.task(queue="mail")
    def send_mail(to: str, order: int) -> None: ...

    send_mail.enqueue("ada@example.org", order=42)

Run the jobs with ``treppe work --app shop:app``. Each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treppe.app import Bury, Context, Down, Retry, Task, Treppe, Unclear, Wait
    from treppe.config import Backoff
    from treppe.errors import (
        ConfigError,
        Conflict,
        IllegalTransition,
        InvalidJob,
        NotFound,
        Refused,
        SchemaMismatch,
        StoreBusy,
        StoreError,
        StoreUnavailable,
        TreppeError,
        Unsupported,
    )
    from treppe.job import Attempt, Job, NewJob, Placed, State

    __version__: str

__all__ = [
    "Attempt",
    "Backoff",
    "Bury",
    "ConfigError",
    "Conflict",
    "Context",
    "Down",
    "IllegalTransition",
    "InvalidJob",
    "Job",
    "NewJob",
    "NotFound",
    "Placed",
    "Refused",
    "Retry",
    "SchemaMismatch",
    "State",
    "StoreBusy",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "Treppe",
    "TreppeError",
    "Unclear",
    "Unsupported",
    "Wait",
    "__version__",
]

_HOMES = ("treppe.errors", "treppe.job", "treppe.config", "treppe.app")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("treppe")
    if name in __all__:
        for home in map(import_module, _HOMES):
            if hasattr(home, name):
                return globals().setdefault(name, getattr(home, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
