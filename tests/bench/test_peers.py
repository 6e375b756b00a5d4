"""Every peer does what the bench asks of it, with real files and processes."""

import pytest

from bench import ours, peers
from bench.grounds import SQLiteGround
from bench.measures import end_to_end, pick_up

GROUND = SQLiteGround()


@pytest.mark.parametrize("contestant", peers.contestants("sqlite"))
def test_a_contestant_carries_out_what_was_enqueued_in_bulk_and_one_by_one(contestant):
    run = end_to_end.one_run(GROUND, contestant, jobs=40, singles=8)
    assert min(run.enqueued, run.one_by_one, run.executed, run.done.cpu) > 0
    assert run.done.jobs == 40
    assert not run.done.capped


@pytest.mark.parametrize("contestant", ours.ours("sqlite"))
def test_an_idle_worker_picks_up_single_jobs(contestant):
    waits = pick_up.one_run(GROUND, contestant, 5)
    assert 0 < waits.p50 <= waits.p99


def test_what_is_not_installed_is_named_and_left_out(monkeypatch):
    def peer(name):
        if name == "huey_sqlite":
            raise ModuleNotFoundError("No module named 'huey'", name="huey")
        return real(name)

    real = peers.peer
    monkeypatch.setattr(peers, "peer", peer)
    monkeypatch.setattr(peers, "absent", peers.absent.__wrapped__)
    assert peers.absent("sqlite")["huey_sqlite"] == "huey is not installed"
    assert not [one for one in peers.contestants("sqlite") if one.startswith("huey")]
    assert "treppe_sqlite/threads" in peers.contestants("sqlite")


def test_a_peer_whose_own_import_is_broken_is_not_left_out_quietly(monkeypatch):
    def peer(name):
        raise ModuleNotFoundError("No module named 'treppe.gone'", name="treppe.gone")

    monkeypatch.setattr(peers, "peer", peer)
    with pytest.raises(ModuleNotFoundError, match=r"treppe\.gone"):
        peers.absent.__wrapped__("sqlite")


@pytest.mark.parametrize("name", peers.names("postgres"))
def test_a_peer_on_a_server_says_what_it_needs_and_how_it_is_set_up(name):
    found = peers.peer(name)
    assert "SELECT EXISTS" in found.open
    assert all(variant.title and variant.settings for variant in found.variants.values())
    if not name.startswith("treppe"):
        assert all("==" in one for one in found.needs.python)
        assert all("@" in one[1:] for one in found.needs.node)


def test_only_the_wanted_peers_take_part_beside_treppe():
    wanted = peers.contestants("sqlite", ["raw_sqlite"])
    assert wanted == ["raw_sqlite/batch_100", "treppe_sqlite/threads", "treppe_sqlite/async"]
