from pathlib import Path

import msgspec
import pytest

from tests.demo.support import QUICK, within
from treppe.demo.ledger import Ledger, Line, Posted
from treppe.demo.processes import Children, Failed
from treppe.demo.screen import Screen
from treppe.demo.stage import NOTHING_YET, PROCESSES, Stage, a_day
from treppe.eyes.measure import QueueFigures


def stage(folder: Path) -> Stage:
    return Stage(a_day(QUICK, folder), Children(folder, {}), Screen())


def test_what_does_not_come_is_told_with_where_it_stands(tmp_path: Path):
    watched = stage(tmp_path)
    Ledger[Posted](tmp_path / "shop.jsonl").write(Posted(1.0, 1001, "event", 7, 1, 200, 5.0))
    Ledger[Line](tmp_path / "crm.jsonl").write(Line(2.0, 1001, 7, 1, None, "up", 201, True))
    watched.figures = msgspec.structs.replace(
        NOTHING_YET, open=3, unclear=2, queues=(QueueFigures("accounting", held=True, why="throttled"),)
    )

    async def story() -> None:
        with pytest.raises(Failed) as failed:
            await watched.until(lambda: False, "the shop had not ended", 0.3)
        assert str(failed.value) == (
            "after 0 s the shop had not ended. Accepted 1; delivered: crm 1, accounting 0, stock 0, mail 0; "
            "3 jobs open, 2 of them unclear; accounting (held: throttled)"
        )

    within(10, story)


def test_chores_are_done_while_it_waits(tmp_path: Path):
    watched, done = stage(tmp_path), []

    async def chore() -> None:
        done.append(1)

    watched.chores.append(chore)
    within(10, lambda: watched.until(lambda: len(done) == 2, "two rounds", 5))
    assert done == [1, 1]


def test_every_process_logs_in_with_a_key_of_its_own(tmp_path: Path):
    day = a_day(QUICK, tmp_path)
    assert sorted(day.keys.values()) == sorted(PROCESSES)
    assert len({*day.keys, *day.secrets.values()}) == len(PROCESSES) + len(day.secrets)
    assert a_day(QUICK, tmp_path) != day
