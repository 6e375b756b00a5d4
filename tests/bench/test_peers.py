"""Every peer does what the bench asks of it, with real files and processes."""

import pytest

from bench import ours, peers
from bench.measures import end_to_end, pick_up


@pytest.mark.parametrize("contestant", peers.contestants())
def test_a_contestant_carries_out_what_was_enqueued_in_bulk_and_one_by_one(contestant):
    run = end_to_end.one_run(contestant, jobs=40, singles=8)
    assert min(run.enqueued, run.one_by_one, run.executed, run.cpu) > 0


@pytest.mark.parametrize("contestant", ours.stores())
def test_an_idle_worker_picks_up_single_jobs(contestant):
    waits = pick_up.one_run(contestant, 5)
    assert 0 < waits.p50 <= waits.p99


def test_what_is_not_installed_is_named_and_left_out(monkeypatch):
    def peer(name):
        if name == "huey_sqlite":
            raise ModuleNotFoundError("No module named 'huey'", name="huey")
        return real(name)

    real = peers.peer
    monkeypatch.setattr(peers, "peer", peer)
    monkeypatch.setattr(peers, "absent", peers.absent.__wrapped__)
    assert "huey_sqlite" in peers.absent()
    assert not [one for one in peers.contestants() if one.startswith("huey")]
    assert "treppe_sqlite/threads" in peers.contestants()


def test_a_peer_whose_own_import_is_broken_is_not_left_out_quietly(monkeypatch):
    def peer(name):
        raise ModuleNotFoundError("No module named 'treppe.gone'", name="treppe.gone")

    monkeypatch.setattr(peers, "peer", peer)
    with pytest.raises(ModuleNotFoundError, match=r"treppe\.gone"):
        peers.absent.__wrapped__()
