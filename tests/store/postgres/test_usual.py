"""The usual claim: one round trip as long as one lane has all there is to do, and thorough as soon as it has not."""

import pytest

from treppe.job import Claim, Event, Kind, NewEvent, NewJob, Repeat, Report, Settlement
from treppe.policy.pace import Pacer
from treppe.store.postgres import PostgresStore
from treppe.store.postgres.database import SQL, Tx
from treppe.store.protocol import Claimed, Wanted
from treppe.testing.contract.verbs import ALICE


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the statements about claims and ends that were sent, in order."""
    names = {sql: name for name, sql in SQL.items()}
    sent: list[str] = []
    execute = Tx._execute

    def noting(tx: Tx, sql: str, params):
        sent.append(names.get(sql, "?"))
        return execute(tx, sql, params)

    monkeypatch.setattr(Tx, "_execute", noting)
    return sent


def put(store: PostgresStore, *ids: str, **more) -> None:
    store.put([NewJob(id, **{"task": "t", "queue": "q"} | more) for id in ids])


def claim(store: PostgresStore, n: int = 2, ended: list[Settlement] | None = None, **more) -> Claimed:
    return store.claim(Wanted(ALICE, n, n, frozenset({"t"}), **more), Pacer({}), ended or [])


def ids(claimed: Claimed) -> list[str]:
    return [claim.id for claim in claimed.claims]


def done(claim: Claim) -> Settlement:
    return Settlement(claim, Event.FINISH, Kind.OK, report=Report(Kind.OK, claim.seq))


def test_the_second_claim_of_a_lane_settles_and_takes_in_one_round_trip(store: PostgresStore, asked: list[str]):
    put(store, *"abcdef")
    first = claim(store)
    asked.clear()
    second = claim(store, ended=[done(one) for one in first.claims])
    assert asked == ["settle_finish", "watched", "claim_usual"]
    assert ids(second) == ["c", "d"]
    assert store.backlog().done == 2


def test_a_usual_claim_is_the_same_as_a_thorough_one(store: PostgresStore):
    put(store, *"abcdef", deadline=5.0)
    thorough, usual = claim(store).claims[0], claim(store).claims[0]
    for name in Claim.__struct_fields__:
        if name not in {"seq", "id", "due_at", "claimed_at", "expires_at", "deadline_at"}:
            assert getattr(usual, name) == getattr(thorough, name), name
    assert usual.deadline_at == pytest.approx(thorough.deadline_at)
    assert usual.claimed_at >= thorough.claimed_at
    assert {one.id for one in store.held(ALICE)} == set("abcd")


@pytest.mark.parametrize("other", [{"priority": 50}, {"queue": "p"}, {"queue": "r"}])
def test_what_becomes_due_elsewhere_is_not_passed(store: PostgresStore, other: dict):
    put(store, *(f"many:{i:02}" for i in range(20)))
    claim(store)
    put(store, "other", **other)
    assert "other" in ids(claim(store))


def test_another_queue_that_is_not_wanted_changes_nothing(store: PostgresStore, asked: list[str]):
    put(store, *"abcdef")
    put(store, "other", queue="p")
    claim(store, queues=("q",))
    asked.clear()
    assert ids(claim(store, queues=("q",))) == ["c", "d"]
    assert asked == ["claim_usual"]


@pytest.mark.parametrize("special", [{"key": "k"}, {"repeat": Repeat.ASK}])
def test_what_needs_a_second_look_keeps_its_place_among_the_others(store: PostgresStore, special: dict):
    put(store, "a", "b")
    put(store, "special", **special)
    put(store, "c", "d")
    claim(store)
    assert set(ids(claim(store))) == {"special", "c"}
    assert ids(claim(store)) == ["d"]


def test_a_queue_that_was_taught_something_is_asked_for_its_pace(store: PostgresStore, asked: list[str]):
    put(store, *"abcdefgh")
    first, second = claim(store), claim(store)
    store.settle([Settlement(first.claims[0], Event.DEFER, Kind.DOWN, report=Report(Kind.DOWN, 1), delay=60.0)])
    asked.clear()
    claim(store, ended=[done(second.claims[0])])
    assert "pace_lock" in asked
    assert "report_add" in asked, "a success counts where something is known"


def test_an_end_that_does_not_count_is_refused_and_the_claim_goes_on(store: PostgresStore):
    put(store, *"abcdef")
    first = claim(store)
    store.settle([done(first.claims[0])])
    ends = [done(one) for one in first.claims]
    second = claim(store, ended=ends)
    assert second.refused == (ends[0],)
    assert ids(second) == ["c", "d"]


def test_a_job_of_an_event_comes_with_its_body(store: PostgresStore):
    events = [NewEvent("s", f"e{i}", b"body", topic="made") for i in range(4)]
    store.put([NewJob(f"j{i}", "t", "q", event=("s", f"e{i}")) for i in range(4)], events)
    for _ in range(2):
        for one in claim(store).claims:
            assert (one.payload, one.topic, one.event) == (b"body", "made", ("s", f"e{one.id[1]}"))


def test_who_was_given_up_gets_nothing(store: PostgresStore):
    put(store, *"abcd")
    claim(store)
    store.retire(ALICE)
    assert claim(store) == Claimed()


def test_a_lane_that_runs_dry_tells_when_its_next_job_is_due(store: PostgresStore):
    put(store, *"abc")
    put(store, "later", delay=50.0)
    claim(store)
    last = claim(store)
    assert ids(last) == ["c"]
    assert last.next_in == pytest.approx(50.0, abs=5.0)
