from pathlib import Path

import msgspec

from treppe.config import Settings, Source
from treppe.config.check import check


class Keeps(msgspec.Struct, frozen=True):
    survives_power_loss: bool
    durability: str


def test_good_settings_have_hints_at_most(tmp_path: Path) -> None:
    found = check(Settings(f"sqlite:///{tmp_path}/treppe.db"))
    assert {finding.level for finding in found} == {"hint"}


def test_errors_come_first_and_hints_last() -> None:
    settings = Settings("redis://h", sources={"s": Source("s", verify="none")})
    levels = [finding.level for finding in check(settings)]
    assert levels == sorted(levels, key=["error", "warning", "hint"].index)
    assert set(levels) == {"error", "warning", "hint"}


def test_a_store_that_forgets_at_power_loss_is_a_warning_where_webhooks_are_accepted(tmp_path: Path) -> None:
    settings = Settings(f"sqlite:///{tmp_path}/treppe.db", sources={"s": Source("s", verify="none")})
    forgets, keeps = Keeps(False, "synchronous=OFF"), Keeps(True, "synchronous=FULL")
    sentence = "an accepted webhook can be lost when the power fails (synchronous=OFF)"
    assert sentence in [finding.text for finding in check(settings, forgets)]
    assert sentence not in [finding.text for finding in check(settings, keeps)]
    assert sentence not in [finding.text for finding in check(Settings(settings.store), forgets)]
