"""New ids: unique, and in the order they were made."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from treppe.intake import ids as ids_module
from treppe.intake import new_id


def test_new_ids_are_version_7_and_grow():
    ids = [new_id() for _ in range(10_000)]
    assert ids == sorted(set(ids))
    assert all(id[14] == "7" and id[19] in "89ab" for id in ids)
    milliseconds = int(ids[-1].replace("-", "")[:12], 16)
    assert abs(milliseconds / 1000 - time.time()) < 60


def test_new_ids_stay_unique_over_threads():
    with ThreadPoolExecutor(8) as threads:
        batches = list(threads.map(lambda _: [new_id() for _ in range(2000)], range(8)))
    assert len({id for batch in batches for id in batch}) == 16_000
    assert all(batch == sorted(batch) for batch in batches)


def test_new_ids_grow_although_the_clock_goes_back(monkeypatch):
    before = new_id()
    monkeypatch.setattr("treppe.intake.ids.time.time_ns", lambda: 1_000_000_000)
    assert before < new_id() < new_id()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_ids_of_its_own_although_the_lock_was_held():
    read, write = os.pipe()
    with ids_module._id_lock:
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends it, should it wait for ever
            os.write(write, new_id().encode())
            os._exit(0)
    os.close(write)
    told = os.read(read, 100).decode()
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    assert len(told) == 36
    assert told != new_id()
