"""The bench's own processes are not looked at by the coverage: it would be most of what they measure."""

import pytest


@pytest.fixture(autouse=True)
def processes_at_full_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"):
        monkeypatch.delenv(name, raising=False)
