from collections.abc import Iterator

import pytest

from treppe import Treppe
from treppe.testing.clock import ManualClock
from treppe.testing.kit import isolated


@pytest.fixture
def app() -> Treppe:
    return Treppe("sqlite:///never-opened.db")


@pytest.fixture
def clock(app: Treppe) -> Iterator[ManualClock]:
    """The app's jobs live in a store of this test's own, by this clock."""
    with isolated(app) as clock:
        yield clock
