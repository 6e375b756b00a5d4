"""Within: a job enqueued in the caller's transaction is there exactly if the transaction commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from treppe.job import NewJob
from treppe.store.protocol import Put, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Connection, Contract, needs
from treppe.testing.contract.verbs import claim_ids, claim_one, find_all, finish, job, put, read, unchanged

Connect = Callable[[], AbstractContextManager[Connection]]


class Within(Contract):
    """Statements for somebody else's connection."""

    @pytest.fixture
    def theirs(self, store: Store, tmp_path: Path) -> Iterator[Connection]:
        """The caller's own connection, in a transaction."""
        needs(store, "within")
        with self.connect(tmp_path) as connection:
            yield connection

    @pytest.mark.parametrize("size", [0, 1, 2, 100])
    def test_a_commit_makes_the_jobs_visible_and_not_before(self, store: Store, theirs: Connection, size: int) -> None:
        placed = enqueue(store, theirs, *[job(f"job-{i}") for i in range(size)])
        assert find_all(store) == []
        theirs.commit()
        assert [(one.id, one.duplicate) for one in placed.jobs] == [(f"job-{i}", False) for i in range(size)]
        assert len(find_all(store)) == store.backlog().accepted == size
        assert len(claim_ids(store)) == size

    def test_a_rollback_leaves_nothing(self, store: Store, theirs: Connection) -> None:
        with unchanged(store):
            enqueue(store, theirs, job("a"))
            theirs.rollback()
        assert not put(store, "a")[0].duplicate

    def test_a_savepoint_rolled_back_leaves_nothing(self, store: Store, theirs: Connection) -> None:
        enqueue(store, theirs, job("kept"))
        theirs.execute("SAVEPOINT inner_one")
        enqueue(store, theirs, job("dropped"))
        theirs.execute("ROLLBACK TO SAVEPOINT inner_one")
        theirs.commit()
        assert [one.id for one in find_all(store)] == ["kept"]

    def test_the_job_is_the_same_as_one_that_was_put(self, store: Store, theirs: Connection) -> None:
        fields = {"payload": b"\0\xff", "key": "k", "priority": 7, "delay": 10, "deadline": 5, "expires": 50}
        enqueue(store, theirs, job("theirs", **fields))
        theirs.commit()
        put(store, "ours", **fields)
        ours, theirs_job = read(store, "ours"), read(store, "theirs")
        for name in ours.__struct_fields__:
            if name not in ("seq", "id", "created_at", "behind"):
                assert getattr(ours, name) == getattr(theirs_job, name), name

    def test_the_seq_that_was_answered_is_the_jobs(self, store: Store, theirs: Connection) -> None:
        (placed,) = enqueue(store, theirs, job("a")).jobs
        theirs.commit()
        assert placed.seq == read(store, "a").seq

    def test_a_duplicate_leaves_the_transaction_usable(self, store: Store, theirs: Connection) -> None:
        theirs.rollback()
        (first,) = put(store, "a")
        (again,) = enqueue(store, theirs, job("a")).jobs
        enqueue(store, theirs, job("b"))
        theirs.commit()
        assert (again.seq, again.duplicate, again.conflict) == (first.seq, True, "")
        assert len(find_all(store)) == store.backlog().accepted == 2

    def test_a_conflict_is_answered_and_leaves_the_transaction_usable(self, store: Store, theirs: Connection) -> None:
        theirs.rollback()
        put(store, "a", payload=b"1")
        (again,) = enqueue(store, theirs, job("a", payload=b"2")).jobs
        enqueue(store, theirs, job("b"))
        theirs.commit()
        assert "content" in again.conflict
        assert read(store, "a").payload == b"1"

    def test_a_duplicate_inside_the_transaction_is_answered(self, store: Store, theirs: Connection) -> None:
        first, again = enqueue(store, theirs, job("a"), job("a")).jobs
        (third,) = enqueue(store, theirs, job("a")).jobs
        theirs.commit()
        assert (first.duplicate, again.duplicate, third.duplicate) == (False, True, True)
        assert len(find_all(store)) == 1

    def test_a_job_of_a_transaction_is_settled_like_any_other(
        self, store: Store, theirs: Connection, clock: ManualClock
    ) -> None:
        enqueue(store, theirs, job("a", delay=60))
        theirs.commit()
        clock.advance(60)
        finish(store, claim_one(store))
        assert (store.backlog().done, store.backlog().open) == (1, 0)


def enqueue(store: Store, connection: Connection, *jobs: NewJob) -> Put:
    """Run the store's plan on the caller's connection, as every integration does."""
    plan = store.plan(jobs)
    try:
        sql, parameters = next(plan)
        while True:
            rows = connection.execute(sql, parameters)
            sql, parameters = plan.send(list(rows.fetchall()))
    except StopIteration as end:
        answer: Put = end.value
        return answer
