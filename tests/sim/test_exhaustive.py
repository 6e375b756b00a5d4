"""A small world, searched whole."""

import pytest

from tests.sim.exhaustive import Disagreement, Search
from treppe.job import Repeat

DEPTH = 5


@pytest.fixture
def search(tmp_path):
    opened = []

    def make(*repeats: Repeat) -> Search:
        opened.append(Search(tmp_path, repeats))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    "repeats", [(Repeat.SAFE, Repeat.SAFE), (Repeat.SAFE, Repeat.ASK), (Repeat.ASK, Repeat.SAFE)], ids="-".join
)
def test_two_workers_and_two_jobs_of_one_key_do_what_the_model_says(search, repeats):
    small = search(*repeats)
    small.run(DEPTH)
    assert small.states > 400
    assert small.calls > 10_000


def test_the_search_tells_the_way_to_what_it_finds(search):
    small = search(Repeat.SAFE, Repeat.SAFE)
    small.store.settle = lambda settlements: ()
    with pytest.raises(
        Disagreement, match=r"(?s)one is running.*after\n  1\. anna claims\n  2\. worker 10 settles one"
    ):
        small.run(2)
