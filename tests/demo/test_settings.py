from pathlib import Path

import pytest

from treppe.config import Backoff, Destination, Rate, Settings
from treppe.config.check import check
from treppe.config.load import load
from treppe.demo.friday import DESTINATIONS, Friday
from treppe.demo.settings import KEY_VARIABLE, VARIABLES, treppe_toml

PORTS = {name: 20_000 + n for n, name in enumerate((*DESTINATIONS, "alerts", "smtp", "door"))}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for variable in (KEY_VARIABLE, *VARIABLES.values()):
        monkeypatch.setenv(variable, "a secret of this test, long enough")
    path = tmp_path / "treppe.toml"
    path.write_text(treppe_toml(Friday(), PORTS, "sqlite:///friday.db"))
    return load(path)


def test_the_settings_of_the_friday_are_good_ones(settings: Settings):
    assert [finding for finding in check(settings) if finding.level == "error"] == []


def test_accounting_is_called_too_fast_and_never_twice(settings: Settings):
    assert settings.queues["accounting"].rate == Rate(375, 15.0)
    assert settings.destinations["accounting"].repeat == "ask"


def test_stock_gives_up_after_three_charged_attempts(settings: Settings):
    stock = settings.destinations["stock"]
    assert (stock.repeat, stock.attempts, stock.backoff) == ("safe", 3, Backoff(base=0.5, factor=2.0))


def test_everything_else_is_at_its_defaults(settings: Settings):
    usual = Destination("any", "any")
    said = {"crm": {"idempotency"}, "accounting": {"repeat"}, "stock": {"repeat", "attempts", "backoff"}, "mail": set()}
    for name, destination in settings.destinations.items():
        differs = {
            field for field in Destination.__struct_fields__ if getattr(destination, field) != getattr(usual, field)
        }
        assert differs == said[name] | {"name", "url", "auth", "allow_networks", "allow_http"}
