"""The contract every store keeps, as tests. Subclass :class:`StoreContract` and run pytest.

::

    from treppe.testing.contract import StoreContract

    class TestMyStore(StoreContract):
        def make_store(self, tmp_path, clock):
            return MyStore(tmp_path / "jobs", clock=clock)

What a store says it cannot do (``store.can``, ``opener``) is left out, aloud.
"""

from __future__ import annotations

import pkgutil

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))

from treppe.testing.contract.base import Connection, Contract, Opener  # noqa: E402 (only now do asserts tell more)
from treppe.testing.contract.suite import THEMES, StoreContract  # noqa: E402

__all__ = ["THEMES", "Connection", "Contract", "Opener", "StoreContract"]
