"""Put: a job is accepted once, whole, and exactly as it was given."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from treppe.errors import TreppeError
from treppe.job import Event, NewJob, Repeat, State, band_of
from treppe.store.protocol import MAX_BATCH, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    QUEUE,
    REACHABLE,
    TASK,
    act,
    claim_ids,
    claim_one,
    event,
    find_all,
    finish,
    into,
    job,
    put,
    read,
    state,
    unchanged,
    upkeep,
)

FIVE_MEBIBYTES = 5 * 2**20


class Putting(Contract):
    """Batches, ids, duplicates and conflicts."""

    @pytest.mark.parametrize("size", [0, 1, 2, 100, MAX_BATCH])
    def test_a_batch_is_answered_in_order_with_growing_seqs(self, store: Store, size: int) -> None:
        ids = [f"job-{i}" for i in range(size)]
        placed = put(store, *ids)
        assert [one.id for one in placed] == ids
        assert [one.seq for one in placed] == sorted({one.seq for one in placed})
        assert not any(one.duplicate or one.conflict for one in placed)
        assert store.backlog().accepted == size

    def test_a_try_answers_as_a_put_does_or_says_that_it_would_wait(self, store: Store) -> None:
        """An event loop asks so: None means that nothing was stored, and is all that some stores ever say."""
        with unchanged(store) if not store.can.puts_at_once else nullcontext():
            placed = store.try_put([job("a"), job("b", event=("shop", "e"), payload=b"")], [event("e")])
        if not store.can.puts_at_once:
            assert placed is None
            return
        assert placed is not None
        assert [(one.id, one.duplicate) for one in (*placed.jobs, *placed.events)] == [
            ("a", False),
            ("b", False),
            ("e", False),
        ]
        again = store.try_put([job("a")])
        assert again is not None
        assert again.jobs[0].duplicate
        assert sorted(claim_ids(store)) == ["a", "b"]

    def test_a_later_batch_has_later_seqs(self, store: Store) -> None:
        (first,) = put(store, "a")
        (second,) = put(store, "b")
        assert second.seq > first.seq

    def test_a_job_reads_back_as_it_was_put(self, store: Store, clock: ManualClock) -> None:
        (placed,) = put(store, "a", payload=b"[1]", content_type="text/x", key="k", priority=7, attempts=9, delay=10)
        job = read(store, "a")
        assert (job.seq, job.id, job.task, job.queue, job.key) == (placed.seq, "a", TASK, QUEUE, "k")
        assert (job.payload, job.content_type, band_of(job.priority)) == (b"[1]", "text/x", band_of(7))
        assert (job.state, job.claims, job.charged, job.attempts, job.crashes) == (State.WAITING, 0, 0, 9, 0)
        assert (job.created_at, job.ended_at, job.event, job.history) == (clock(), None, None, ())

    @pytest.mark.parametrize("repeat", list(Repeat))
    def test_a_job_keeps_its_repeat(self, store: Store, repeat: Repeat) -> None:
        put(store, "a", repeat=repeat)
        assert read(store, "a").repeat is repeat

    def test_times_count_from_the_first_due_time(self, store: Store, clock: ManualClock) -> None:
        put(store, "delayed", delay=10, deadline=20, expires=30)
        put(store, "at", at=clock() + 100, deadline=20, expires=30)
        for id, due in (("delayed", clock() + 10), ("at", clock() + 100)):
            job = read(store, id)
            assert (job.due_at, job.run_at, job.deadline_at, job.expires_at) == (due, due, due + 20, due + 30)

    def test_a_due_time_may_lie_in_the_past(self, store: Store, clock: ManualClock) -> None:
        put(store, "a", at=clock() - 3600)
        assert read(store, "a").due_at == clock() - 3600
        assert claim_ids(store) == ["a"]

    def test_a_job_without_a_deadline_has_none(self, store: Store) -> None:
        put(store, "a")
        assert read(store, "a").deadline_at is None

    @pytest.mark.parametrize(
        "payload",
        [b"", b"\0", b"a\0b", b"\xff\xfe", bytes(range(256)), b'{"\\ud800": "\\u0000"}', "ä\u20ac\U0001f600".encode()],
        ids=["empty", "nul", "nul inside", "not utf-8", "every byte", "strange json", "utf-8"],
    )
    def test_payloads_are_bytes_and_stay_as_they_are(self, store: Store, payload: bytes) -> None:
        put(store, "a", payload=payload)
        assert read(store, "a").payload == payload
        assert claim_one(store).payload == payload

    def test_a_payload_of_five_mebibytes_comes_out_whole(self, store: Store) -> None:
        payload = bytes(range(256)) * (FIVE_MEBIBYTES // 256)
        put(store, "a", payload=payload)
        assert claim_one(store).payload == payload

    def test_ids_are_compared_exactly(self, store: Store) -> None:
        ids = ["a", "A", "a ", " a", "ä", "a\u0308", "%", "_", "a%", "é", "É", "ß", "ss", "\U0001f600" * 255, "x" * 255]
        placed = put(store, *ids)
        assert not any(one.duplicate or one.conflict for one in placed)
        assert [read(store, id).id for id in ids] == ids
        assert all(one.duplicate for one in put(store, *ids))

    def test_an_unknown_id_is_no_job(self, store: Store) -> None:
        put(store, "a")
        assert store.get("A") is None

    def test_a_second_put_answers_with_the_first_job(self, store: Store) -> None:
        (first,) = put(store, "a", payload=b"1")
        (second,) = put(store, "a", payload=b"1")
        assert (second.id, second.seq, second.duplicate, second.conflict) == ("a", first.seq, True, "")
        assert store.backlog().accepted == 1
        assert len(find_all(store)) == 1

    def test_a_duplicate_changes_nothing_not_even_what_is_no_content(self, store: Store) -> None:
        put(store, "a", priority=5, delay=60)
        with unchanged(store, "a"):
            (again,) = put(store, "a", priority=-5, delay=0, deadline=5, key="k")
        assert again.duplicate

    @pytest.mark.parametrize("reached", REACHABLE)
    def test_an_id_is_taken_in_every_state(self, store: Store, reached: State) -> None:
        into(store, reached)
        with unchanged(store, "a"):
            (again,) = put(store, "a")
        assert again.duplicate
        assert again.seq == read(store, "a").seq

    @pytest.mark.parametrize(
        ("other", "differs"),
        [({"task": "app.other"}, "task"), ({"queue": "other"}, "queue"), ({"payload": b"2"}, "content")],
        ids=["task", "queue", "content"],
    )
    def test_another_task_queue_or_content_is_a_conflict(
        self, store: Store, other: dict[str, object], differs: str
    ) -> None:
        (first,) = put(store, "a", payload=b"1")
        with unchanged(store, "a"):
            (second,) = put(store, "a", **{"payload": b"1"} | other)
        assert differs in second.conflict
        assert second.seq == first.seq

    @pytest.mark.parametrize("reached", [State.DONE, State.DEAD, State.CANCELLED, State.RUNNING])
    def test_a_conflict_is_still_seen_after_the_job_moved_on(self, store: Store, reached: State) -> None:
        into(store, reached, payload=b"1")
        (second,) = put(store, "a", payload=b"2")
        assert "content" in second.conflict

    def test_a_duplicate_inside_one_batch_is_answered_with_the_first(self, store: Store) -> None:
        first, other, again = put(store, "a", "b", "a")
        assert (again.seq, again.duplicate) == (first.seq, True)
        assert not first.duplicate
        assert not other.duplicate
        assert store.backlog().accepted == 2

    def test_a_conflict_inside_one_batch_is_told(self, store: Store) -> None:
        first, second = store.put([job("a", payload=b"1"), job("a", payload=b"2")]).jobs
        assert (first.duplicate, first.conflict) == (False, "")
        assert "content" in second.conflict
        assert read(store, "a").payload == b"1"

    def test_a_batch_of_old_and_new_places_only_the_new(self, store: Store) -> None:
        put(store, *[f"job-{i}" for i in range(0, 100, 2)])
        placed = put(store, *[f"job-{i}" for i in range(100)])
        assert [one.duplicate for one in placed] == [i % 2 == 0 for i in range(100)]
        assert len(find_all(store)) == store.backlog().accepted == 100

    def test_a_conflict_does_not_hinder_the_others_of_its_batch(self, store: Store) -> None:
        put(store, "b", payload=b"1")
        a, b, c = put(store, "a", "b", "c", payload=b"2")
        assert (a.conflict, bool(b.conflict), c.conflict) == ("", True, "")
        assert read(store, "c").payload == b"2"

    @pytest.mark.parametrize("place", [0, 50, 99])
    def test_a_batch_with_an_impossible_job_places_none_of_it(self, store: Store, place: int) -> None:
        batch = [job(f"job-{i}") for i in range(99)]
        batch.insert(place, NewJob("impossible", TASK, QUEUE, event=("shop", "nobody put this")))
        with unchanged(store), pytest.raises(TreppeError):
            store.put(batch)
        assert find_all(store) == []
        assert not any(one.duplicate for one in put(store, *[f"job-{i}" for i in range(99)]))

    @pytest.mark.parametrize("ended", [State.DONE, State.CANCELLED])
    def test_an_id_is_free_again_only_when_keep_has_passed_since_the_end(
        self, store: Store, clock: ManualClock, ended: State
    ) -> None:
        into(store, State.WAITING, keep=1000.0)
        clock.advance(5000)
        upkeep(store)
        first = read(store, "a").seq
        _end(store, ended)
        clock.advance(999)
        upkeep(store)
        assert put(store, "a")[0].duplicate
        clock.advance(2)
        assert upkeep(store).forgotten == 1
        (anew,) = put(store, "a", payload=b"other content")
        assert (anew.duplicate, anew.conflict) == (False, "")
        assert anew.seq > first

    @pytest.mark.parametrize("open_state", [s for s in REACHABLE if s not in (State.DONE, State.CANCELLED)])
    def test_the_id_of_a_job_that_is_not_over_is_never_free(
        self, store: Store, clock: ManualClock, open_state: State
    ) -> None:
        into(store, open_state, keep=10.0, expires=20.0)
        clock.advance(5 * 365 * 86400)
        upkeep(store)
        assert put(store, "a")[0].duplicate
        assert state(store, "a") not in (State.DONE, State.CANCELLED)


def _end(store: Store, ended: State) -> None:
    if ended is State.DONE:
        finish(store, claim_one(store))
    else:
        assert act(store, Event.CANCEL, "a") == ()
