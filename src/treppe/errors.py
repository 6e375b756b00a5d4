"""Every error Treppe raises, as one tree. An error carries its subject and says what to do.

::

    TreppeError
    ├── ConfigError            a setting is wrong: names the place and the cure
    ├── InvalidJob             what should be enqueued cannot be: too large, a bad name, wrong arguments
    ├── Unsupported            the store cannot keep this promise
    ├── Conflict               the id is taken by a job with another task, queue or content
    ├── NotFound               no such job, queue, source …
    ├── IllegalTransition      the state machine has no such row
    ├── Refused                a token or state did not match; nothing was changed
    └── StoreError             trouble with the store
        ├── StoreUnavailable   it may work again by itself: busy, restarting, disk full
        │   └── StoreBusy      somebody else's open transaction is in the way of this call alone
        └── SchemaMismatch     the store was made by another version
"""

from __future__ import annotations


class TreppeError(Exception):
    """The root: ``except TreppeError`` catches all of them and nothing else."""


class ConfigError(TreppeError):
    """A setting is wrong. ``where`` names the place, e.g. ``destination.crm.url``."""

    def __init__(self, where: str, problem: str, cure: str = "") -> None:
        self.where, self.problem, self.cure = where, problem, cure
        super().__init__(f"{where}: {problem}" + (f". {cure}" if cure else ""))


class InvalidJob(TreppeError):
    """A job cannot be enqueued as it is."""


class Unsupported(TreppeError):
    """The store cannot keep what was asked of it; nothing was done."""


class Conflict(TreppeError):
    """The id belongs to another job already.

    ``id`` is the id, ``differs`` names what differs from the first job: task, queue or content.
    """

    def __init__(self, id: str, differs: str) -> None:
        self.id, self.differs = id, differs
        super().__init__(
            f'the id "{id}" is taken by a job with another {differs}. '
            "Use another id, or enqueue exactly the same work again"
        )


class NotFound(TreppeError):
    """There is no such thing. ``what`` is its kind, ``name`` the name that was asked for."""

    def __init__(self, what: str, name: str) -> None:
        self.what, self.name = what, name
        super().__init__(f'there is no {what} "{name}"')


class IllegalTransition(TreppeError):
    """The state machine has no such row."""

    def __init__(self, state: str, event: str) -> None:
        self.state, self.event = state, event
        super().__init__(f'a job that is {state.replace("_", " ")} cannot be changed by "{event}"')


class Refused(TreppeError):
    """The token, the worker or the state did not match; nothing was changed."""

    def __init__(self, id: str, why: str) -> None:
        self.id, self.why = id, why
        super().__init__(f'job "{id}" was left as it is: {why}')


class StoreError(TreppeError):
    """Trouble with the store. The driver's error is the ``__cause__``."""


class StoreUnavailable(StoreError):
    """The store does not answer right now; the same call may work later."""


class StoreBusy(StoreUnavailable):
    """Somebody else's open transaction is in the way, of this call alone: it holds one of its ids, or a row."""


class SchemaMismatch(StoreError):
    """The store's tables belong to another version of Treppe."""
