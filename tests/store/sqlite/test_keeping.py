"""The walks of upkeep: bounded, past what stays, and to the end of what goes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from treppe.job import NewEvent, NewJob
from treppe.store.protocol import MAX_BATCH
from treppe.store.sqlite import KEEP_EVENTS, SQLiteStore
from treppe.testing.clock import ManualClock

ROUNDS = 20


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "jobs.db", durable=False, clock=clock)
    store.migrate()
    yield store
    store.close()


def events(store: SQLiteStore, n: int, name: str, used: bool = False) -> None:
    """Put events; where they are *used*, each has a job that waits."""
    ids = [f"{name}-{i}" for i in range(n)]
    jobs = (
        [NewJob(f"shop:{id}:crm", "task", "crm", event=("shop", id), expires=2 * KEEP_EVENTS) for id in ids]
        if used
        else []
    )
    store.put(jobs, [NewEvent("shop", id, b"{}") for id in ids])


def count(store: SQLiteStore) -> int:
    return store._database.read(lambda db: db.execute("SELECT count(*) FROM treppe_event").fetchone()[0])


def as_long_as_there_is_more(store: SQLiteStore) -> int:
    """Do upkeep until it says that nothing is left; how many rounds that took."""
    for rounds in range(1, ROUNDS):
        if not store.upkeep(None).more:
            return rounds
    raise AssertionError("upkeep says for ever that there is more to do")


def steps_of(store: SQLiteStore, act: Callable[[], object]) -> int:
    """The steps of SQLite's machine that *act* takes on the reading connection, in hundreds."""
    [reader] = store._database._here().readers
    taken: list[None] = []
    reader.set_progress_handler(lambda: taken.append(None), 100)
    act()
    reader.set_progress_handler(None, 0)
    return len(taken)


def test_old_events_go_to_the_last_as_long_as_there_is_more(store, clock):
    events(store, 3 * MAX_BATCH + 7, "old")
    clock.advance(KEEP_EVENTS)
    events(store, 10, "young")
    assert as_long_as_there_is_more(store) == 4
    assert count(store) == 10


def test_one_round_takes_a_bounded_number_of_events(store, clock):
    events(store, 2 * MAX_BATCH, "old")
    clock.advance(KEEP_EVENTS)
    assert store.upkeep(None).more
    assert count(store) == MAX_BATCH


def test_old_events_behind_many_that_are_still_used_are_found_by_later_rounds(store, clock):
    events(store, 2 * MAX_BATCH + 3, "used", used=True)
    events(store, 5, "old")
    clock.advance(KEEP_EVENTS)
    rounds = 0
    while count(store) > 2 * MAX_BATCH + 3:
        rounds += 1
        assert not store.upkeep(None).more, "who is at rest would be kept busy, although nothing goes"
        assert rounds <= 3
    assert rounds == 3


def test_what_went_free_behind_the_walk_goes_when_it_comes_round_again(store, clock):
    events(store, MAX_BATCH, "used", used=True)
    events(store, 1, "last", used=True)
    clock.advance(KEEP_EVENTS)
    store.upkeep(None)
    store._database.write(lambda db: db.execute("DELETE FROM treppe_job WHERE id = 'shop:used-0:crm'").rowcount)
    for _ in range(2):
        store.upkeep(None)
    assert count(store) == MAX_BATCH


@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
def test_upkeep_that_has_nothing_to_do_asks_for_no_more(store, used):
    events(store, 1200, "young", used)
    store.put([NewJob(f"job-{n}", "task", "q", key="k") for n in range(1200)])
    assert not store.upkeep(None).more


def test_a_round_looks_at_no_more_events_the_more_young_ones_there_are(store):
    events(store, 2 * MAX_BATCH, "a")
    few = steps_of(store, lambda: store.upkeep(None))
    events(store, 20 * MAX_BATCH, "b")
    assert steps_of(store, lambda: store.upkeep(None)) <= few + 1
