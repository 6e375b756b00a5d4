"""Events: one accepted delivery of a source is kept once, byte for byte, with or without jobs."""

from __future__ import annotations

import pytest

from treppe.errors import TreppeError
from treppe.job import Event, NewEvent, NewJob, State
from treppe.store.protocol import Put, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import TASK, act, bury, claim_one, event, find_all, finish, job, put, read, upkeep

HEADERS = (("X-Topic", "orders/create"), ("X-Twice", "1"), ("X-Twice", "2"), ("x-empty", ""), ("X-Text", "Grüße"))


class Events(Contract):
    """Events and the jobs that refer to them."""

    def test_an_event_reads_back_exactly_as_it_came(self, store: Store) -> None:
        came = event("e", body=bytes(range(256)), headers=HEADERS, content_type="text/x; y=z", topic="orders/create")
        store.put([], [came])
        assert store.event("shop", "e") == came

    @pytest.mark.parametrize("body", [b"", b"\0", b"\xff", b"a=1&a=2", b'{"a":1,"a":2}', b"x" * 5 * 2**20])
    def test_a_body_is_bytes_and_stays_as_it_is(self, store: Store, body: bytes) -> None:
        deliver(store, event("e", body=body), "crm")
        assert claim_one(store).payload == body

    def test_an_unknown_event_is_none(self, store: Store) -> None:
        store.put([], [event("e")])
        assert store.event("shop", "E") is None
        assert store.event("other", "e") is None

    def test_an_event_and_its_jobs_are_placed_together(self, store: Store) -> None:
        answer = deliver(store, event("e"), "crm", "stock")
        assert [one.id for one in answer.events] == ["e"]
        assert [one.id for one in answer.jobs] == ["shop:e:crm", "shop:e:stock"]
        assert not any(one.duplicate or one.conflict for one in (*answer.events, *answer.jobs))
        assert store.backlog().accepted == 2

    def test_a_job_of_an_event_is_claimed_with_its_bytes_headers_and_topic(self, store: Store) -> None:
        deliver(store, event("e", body=b"\0\xff", headers=HEADERS, content_type="text/x", topic="orders/create"), "crm")
        claim = claim_one(store)
        assert (claim.payload, claim.content_type, claim.event) == (b"\0\xff", "text/x", ("shop", "e"))
        assert (claim.headers, claim.topic) == (HEADERS, "orders/create")

    def test_a_job_of_an_event_reads_back_with_its_bytes(self, store: Store) -> None:
        deliver(store, event("e", body=b"\0\xff", content_type="text/x"), "crm")
        job = read(store, "shop:e:crm")
        assert (job.payload, job.content_type, job.event) == (b"\0\xff", "text/x", ("shop", "e"))

    def test_a_job_without_an_event_has_no_headers_and_no_topic(self, store: Store) -> None:
        put(store, "a")
        claim = claim_one(store)
        assert (claim.event, claim.headers, claim.topic) == (None, (), "")

    def test_a_filtered_event_is_kept_without_jobs(self, store: Store) -> None:
        answer = store.put([], [event("e")])
        assert (len(answer.events), answer.jobs) == (1, ())
        assert store.event("shop", "e") == event("e")
        assert find_all(store) == []

    def test_a_repeated_event_is_answered_with_the_first(self, store: Store) -> None:
        first = deliver(store, event("e"), "crm")
        again = deliver(store, event("e"), "crm")
        assert [(one.seq, one.duplicate, one.conflict) for one in again.events] == [(first.events[0].seq, True, "")]
        assert [(one.seq, one.duplicate, one.conflict) for one in again.jobs] == [(first.jobs[0].seq, True, "")]
        assert len(find_all(store)) == 1

    def test_a_repeated_event_places_no_job_for_a_new_destination(self, store: Store) -> None:
        deliver(store, event("e"), "crm")
        again = deliver(store, event("e"), "crm", "stock")
        assert [one.duplicate for one in again.jobs] == [True, True]
        assert store.get("shop:e:stock") is None

    def test_a_repeated_filtered_event_places_no_job(self, store: Store) -> None:
        store.put([], [event("e")])
        assert deliver(store, event("e"), "crm").jobs[0].duplicate
        assert find_all(store) == []

    def test_a_repeat_with_other_headers_is_no_conflict(self, store: Store) -> None:
        deliver(store, event("e", headers=(("X-Try", "1"),)), "crm")
        (again,) = deliver(store, event("e", headers=(("X-Try", "2"),)), "crm").events
        assert (again.duplicate, again.conflict) == (True, "")
        assert found(store, "e").headers == (("X-Try", "1"),)

    def test_the_same_id_with_another_body_is_a_conflict_and_places_nothing(self, store: Store) -> None:
        first = deliver(store, event("e", body=b"1"), "crm")
        answer = deliver(store, event("e", body=b"2"), "crm", "stock")
        assert answer.events[0].conflict
        assert answer.events[0].seq == first.events[0].seq
        assert found(store, "e").body == b"1"
        assert [one.id for one in find_all(store)] == ["shop:e:crm"]

    def test_one_id_from_two_sources_is_two_events(self, store: Store) -> None:
        answer = store.put([], [event("e", body=b"1"), event("e", source="other", body=b"2")])
        assert not any(one.duplicate or one.conflict for one in answer.events)
        assert found(store, "e").body == b"1"
        assert found(store, "e", "other").body == b"2"

    def test_one_event_delivered_twice_in_one_batch_is_placed_once(self, store: Store) -> None:
        jobs = [job_of(event("e"), name) for name in ("crm", "stock")]
        answer = store.put([*jobs, *jobs], [event("e"), event("e")])
        assert [one.duplicate for one in answer.events] == [False, True]
        assert [one.duplicate for one in answer.jobs] == [False, False, True, True]
        assert len(find_all(store)) == 2

    def test_repeats_do_not_hinder_the_new_ones_of_their_batch(self, store: Store) -> None:
        deliver(store, event("e-5"), "crm")
        events = [event(f"e-{i}") for i in range(100)]
        answer = store.put([job_of(one, "crm") for one in events], events)
        assert [one.duplicate for one in answer.events] == [i == 5 for i in range(100)]
        assert [one.duplicate for one in answer.jobs] == [i == 5 for i in range(100)]
        assert len(find_all(store)) == 100

    def test_events_and_jobs_without_events_go_in_one_batch(self, store: Store) -> None:
        store.put([job("a", payload=b"own"), job_of(event("e"), "crm")], [event("e", body=b"shared")])
        assert read(store, "a").payload == b"own"
        assert read(store, "shop:e:crm").payload == b"shared"

    def test_a_batch_that_fails_keeps_no_event(self, store: Store) -> None:
        impossible = NewJob("impossible", TASK, "crm", event=("shop", "nobody put this"))
        with pytest.raises(TreppeError):
            store.put([job_of(event("e"), "crm"), impossible], [event("e")])
        assert store.event("shop", "e") is None
        assert find_all(store) == []

    def test_a_job_may_be_added_later_to_an_event_that_is_kept(self, store: Store) -> None:
        store.put([], [event("e", body=b"kept")])
        (placed,) = store.put([job_of(event("e"), "new")]).jobs
        assert not placed.duplicate
        assert claim_one(store).payload == b"kept"

    def test_a_job_added_later_with_a_taken_id_is_a_duplicate(self, store: Store) -> None:
        first = deliver(store, event("e"), "crm")
        (again,) = store.put([job_of(event("e"), "crm")]).jobs
        assert (again.seq, again.duplicate, again.conflict) == (first.jobs[0].seq, True, "")

    def test_the_bytes_stay_as_long_as_one_job_may_need_them(self, store: Store, clock: ManualClock) -> None:
        deliver(store, event("e", body=b"kept"), "crm", "stock")
        finish(store, claim_one(store, queues=("crm",)))
        bury(store, claim_one(store, queues=("stock",)))
        clock.advance(400 * 86400)
        upkeep(store)
        assert store.get("shop:e:crm") is None
        assert act(store, Event.REVIVE, "shop:e:stock") == ()
        assert claim_one(store).payload == b"kept"
        assert read(store, "shop:e:stock").state is State.RUNNING


def job_of(event: NewEvent, destination: str) -> NewJob:
    """The job of an event for one destination, as a door makes it."""
    id = f"{event.source}:{event.id}:{destination}"
    return NewJob(id, TASK, destination, event=(event.source, event.id))


def deliver(store: Store, event: NewEvent, *destinations: str) -> Put:
    """An event arrives and is fanned out."""
    return store.put([job_of(event, name) for name in destinations], [event])


def found(store: Store, id: str, source: str = "shop") -> NewEvent:
    """The event; fails when there is none."""
    kept = store.event(source, id)
    assert kept is not None
    return kept
