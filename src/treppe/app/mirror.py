"""What the code says about tasks, told to stores that others enqueue into by SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from treppe.app.options import Options
from treppe.app.task import Task
from treppe.config import Destination
from treppe.intake import delivery_settings
from treppe.store.protocol import Store

KEPT = ("queue", "repeat", "attempts", "crashes", "expires", "deadline", "priority", "keep", "skip_dead", "key")


def mirror(store: Store, tasks: Mapping[str, Task[Any, Any]], destinations: Iterable[Destination]) -> None:
    """Keep the settings of tasks and destinations in the store, where it has a place for them."""
    keep = getattr(store, "remember_tasks", None)
    if keep is not None:
        told = {name: _kept(task.options) for name, task in tasks.items()}
        keep(told | {one.task: _kept(Options(**_of_delivery(one))) for one in destinations})


def _of_delivery(destination: Destination) -> dict[str, Any]:
    return {name: value for name, value in delivery_settings(destination).items() if name != "task"}


def _kept(options: Options) -> dict[str, object]:
    return {name: value for name, value in msgspec.structs.asdict(options).items() if name in KEPT}
