"""Each measure works in its smallest size; what it finds is the bench's matter."""

import inspect

import pytest

from bench import ours
from bench.figures import Figure, Scale
from bench.grounds import SQLiteGround
from bench.measures import NAMES, crash, door, end_to_end, growth, idle, measure, memory
from bench.processes import PROC
from bench.running import Done, Troubles

needs_proc = pytest.mark.skipif(not (PROC / "self" / "status").exists(), reason="the system has no /proc")
OURS = ours.ours("sqlite")[0]
GROUND = SQLiteGround()


@pytest.mark.parametrize("name", NAMES["postgres"])
def test_a_measure_has_a_title_and_runs_at_a_scale_on_a_ground(name):
    assert measure(name).TITLE
    assert list(inspect.signature(measure(name).run).parameters) == ["scale", "ground"]


@needs_proc
@pytest.mark.parametrize("kind", door.KINDS)
def test_the_door_is_measured_and_has_everything_it_answered_for(kind):
    seen = door.one_run(GROUND, kind, 0.2)
    assert 0 < seen.load.p50_ms <= seen.load.p99_ms
    assert seen.load.answered > 0 < seen.server_us


def test_claims_are_timed_among_few_and_many():
    held = [growth.Held(300), growth.Held(1500), growth.Held(300, 1500), growth.Held(300, keyed=500)]
    with growth.built(GROUND, OURS, held) as urls:
        times = growth.one_run(growth.Claiming(urls, turns=2))
    assert list(times) == [
        "300 waiting",
        "1,500 waiting",
        "300 waiting, 1,500 scheduled",
        "300 waiting, 500 of one order key",
    ]
    assert all(one.claim > 0 < one.settle for one in times.values())


@needs_proc
def test_memory_is_read_early_and_late(monkeypatch):
    monkeypatch.setattr(memory, "REST", 0.0)
    early, late = memory.one_run(GROUND, OURS, 10, 30)
    assert late >= early * 0.5 > 1e6


@needs_proc
def test_the_cost_of_rest_is_a_share_of_a_core(monkeypatch):
    monkeypatch.setattr(idle, "REST", 0.0)
    monkeypatch.setattr(idle, "QUEUES", 2)
    costs = idle.one_run(GROUND, [OURS], 0.3, Troubles())
    assert 0.0 <= costs[OURS].cpu <= 100.0


def runs_at(*rates, enqueued=1.0):
    return [end_to_end.Run(enqueued, enqueued, Done(1, rate, rate, 1.0)) for rate in rates]


def test_ratios_are_taken_run_by_run():
    ratio = end_to_end.ratio(
        {OURS: runs_at(20, 30), "raw_sqlite/batch_100": runs_at(10, 10)}, OURS, "raw_sqlite/batch_100"
    )
    assert ratio.runs == (2.0, 3.0)


def test_on_a_server_ours_is_compared_with_the_best_peer_of_each_run():
    runs = {
        "treppe_postgres/threads": runs_at(40, 40, enqueued=3.0),
        "pgqueuer_postgres/batch_500": runs_at(10, 20, enqueued=2.0),
        "chancy_postgres/async_500": runs_at(20, 10, enqueued=1.0),
        "graphile_postgres/batching": runs_at(40, 50, enqueued=1.0),
        "raw_postgres/batch_100": runs_at(80, 80, enqueued=9.0),
    }
    found = {figure.name.partition(" ÷ ")[2]: figure.runs for figure in end_to_end.postgres_ratios(runs)}
    assert found == {
        "best peer, enqueued one by one": (1.5, 1.5),
        "best peer, enqueued in bulk": (1.5, 1.5),
        "best Python peer": (2.0, 2.0),
        "Graphile Worker": (1.0, 0.8),
        "bare psycopg": (0.5, 0.5),
    }


def test_a_slow_peer_gets_fewer_jobs_and_fewer_still_in_a_quick_run():
    sizes = [
        end_to_end.jobs_of("procrastinate_postgres/concurrency_20", 200_000, Scale(quick=q)) for q in (False, True)
    ]
    assert sizes == [10_000, 2_000]
    assert end_to_end.jobs_of("raw_postgres/batch_100", 200_000, Scale()) == 200_000


def test_all_jobs_in_hand_have_to_run_again_within_the_lease_and_two_seconds():
    figures = crash.figures_of("SQLite", [crash.Again(held=10, lease=10.0, first=10.5, last=12.5)])
    assert [figure.verdict for figure in figures] == ["", "", "missed by 4 %"]
    assert isinstance(figures[2], Figure)
