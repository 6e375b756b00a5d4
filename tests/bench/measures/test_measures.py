"""Each measure works in its smallest size; what it finds is the bench's matter."""

import inspect

import pytest

from bench import ours
from bench.figures import Figure
from bench.measures import NAMES, crash, door, end_to_end, growth, idle, measure, memory
from bench.processes import PROC, fresh_folder

needs_proc = pytest.mark.skipif(not (PROC / "self" / "status").exists(), reason="the system has no /proc")
OURS = ours.stores()[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_measure_has_a_title_and_runs_at_a_scale(name):
    assert measure(name).TITLE
    assert list(inspect.signature(measure(name).run).parameters) == ["scale"]


@needs_proc
@pytest.mark.parametrize("kind", door.KINDS)
def test_the_door_is_measured_and_has_everything_it_answered_for(kind):
    seen = door.one_run(kind, 0.2)
    assert 0 < seen.load.p50_ms <= seen.load.p99_ms
    assert seen.load.answered > 0 < seen.server_us


def test_claims_are_timed_among_few_and_many():
    with fresh_folder() as folder:
        urls = growth.build_all(OURS, folder, few=300, many=1500)
        times = growth.one_run(growth.Claiming(urls, turns=2))
    assert list(times) == ["300 waiting", "1,500 waiting", "300 waiting, 1,500 scheduled"]
    assert all(one.claim > 0 < one.settle for one in times.values())


@needs_proc
def test_memory_is_read_early_and_late(monkeypatch):
    monkeypatch.setattr(memory, "REST", 0.0)
    early, late = memory.one_run(OURS, 10, 30)
    assert late >= early * 0.5 > 1e6


@needs_proc
def test_the_cost_of_rest_is_a_share_of_a_core(monkeypatch):
    monkeypatch.setattr(idle, "REST", 0.0)
    monkeypatch.setattr(idle, "QUEUES", 2)
    assert 0.0 <= idle.one_run(OURS, 0.3) <= 100.0


def test_ratios_are_taken_run_by_run():
    ours_, theirs = (
        [end_to_end.Run(1, 1, rate, 1) for rate in (20, 30)],
        [end_to_end.Run(1, 1, rate, 1) for rate in (10, 10)],
    )
    ratio = end_to_end.ratio({OURS: ours_, "raw_sqlite/batch_100": theirs}, OURS, "raw_sqlite/batch_100")
    assert ratio.runs == (2.0, 3.0)


def test_all_jobs_in_hand_have_to_run_again_within_the_lease_and_two_seconds():
    figures = crash.figures_of("SQLite", [crash.Again(held=10, lease=10.0, first=10.5, last=12.5)])
    assert [figure.verdict for figure in figures] == ["", "", "missed by 4 %"]
    assert isinstance(figures[2], Figure)
