"""Reopening: what was acknowledged is there after a close, and after a kill."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from treppe.job import Event, State
from treppe.store.protocol import Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract
from treppe.testing.contract.verbs import (
    BOB,
    REACHABLE,
    act,
    audit,
    bury,
    claim,
    claim_ids,
    claim_one,
    defer,
    event,
    finish,
    into,
    new_worker,
    put,
    put_many,
    read,
    state,
    unchanged,
    upkeep,
)

Open = Callable[[], Store]


class Reopening(Contract):
    """Close and open again; two doors to one store."""

    @pytest.mark.parametrize("reached", REACHABLE)
    def test_a_job_is_the_same_after_the_store_was_opened_again(
        self, store: Store, open_store: Open, reached: State
    ) -> None:
        into(store, reached, payload=b"\0\xff", key="k", deadline=60)
        before, figures = read(store, "a"), store.backlog()
        store.close()
        again = open_store()
        assert (read(again, "a"), again.backlog()) == (before, figures)

    def test_a_claim_may_be_settled_after_the_store_was_opened_again(self, store: Store, open_store: Open) -> None:
        put(store, "a", "b", key="k")
        taken = claim_one(store)
        store.note(taken, "step", b"1")
        store.close()
        again = open_store()
        assert dict(again.notes("a")) == {"step": b"1"}
        assert claim_ids(again) == []
        finish(again, taken)
        assert claim_ids(again) == ["b"]

    def test_a_worker_keeps_its_lease_over_a_reopening(self, store: Store, open_store: Open) -> None:
        worker = new_worker(store, lease=10)
        store.close()
        assert open_store().renew(worker, 10)

    def test_events_journal_and_audit_survive(self, store: Store, open_store: Open) -> None:
        store.put([], [event("e", body=b"\0", headers=(("A", "ä"),))])
        store.journal.append("s", [b"1", b"2"])
        store.journal.swap("v", None, b"3")
        into(store, State.DEAD)
        act(store, Event.CANCEL, "a")
        trail = audit(store)
        store.close()
        again = open_store()
        assert again.event("shop", "e") == event("e", body=b"\0", headers=(("A", "ä"),))
        assert [one.record for one in again.journal.page("s")] == [b"1", b"2"]
        assert again.journal.get("v") == b"3"
        assert audit(again) == trail

    def test_seqs_and_tokens_go_on_growing(self, store: Store, open_store: Open, clock: ManualClock) -> None:
        (first,) = put(store, "a", keep=1)
        finish(store, claim_one(store))
        put(store, "b")
        taken = claim_one(store)
        clock.advance(10)
        upkeep(store)
        store.close()
        again = open_store()
        (anew,) = put(again, "a")
        assert anew.seq > first.seq
        bury(again, taken)
        act(again, Event.REVIVE, "b")
        assert next(one.token for one in claim(again).claims if one.id == "b") > taken.token

    def test_the_tables_are_made_once(self, store: Store) -> None:
        put(store, "a")
        with unchanged(store, "a"):
            assert store.migrate() == []

    def test_two_doors_show_the_same(self, store: Store, open_store: Open) -> None:
        other = open_store()
        put(store, "a")
        assert read(other, "a") == read(store, "a")
        assert put(other, "a")[0].duplicate
        taken = claim_one(other, worker=BOB)
        assert claim_ids(store) == []
        finish(store, taken)
        assert state(other, "a") is State.DONE
        assert other.backlog() == store.backlog()

    def test_two_doors_take_turns_without_loss(self, store: Store, open_store: Open) -> None:
        other = open_store()
        ids = put_many(store, 100)
        went: list[str] = []
        for _ in range(len(ids)):
            for door in (store, other):
                taken = claim(door, 1).claims
                went += [one.id for one in taken]
                defer(door, *[one for one in taken if one.token == 1])
                finish(door, *[one for one in taken if one.token > 1])
        assert set(went) == set(ids)

    def test_a_store_says_what_it_can(self, store: Store) -> None:
        can = store.can
        assert all(isinstance(value, bool) for value in (can.within, can.many_machines, can.find))
        assert isinstance(can.survives_power_loss, bool)
        assert can.durability
        assert store.lease > 0

    def test_the_time_is_the_stores(self, store: Store, clock: ManualClock) -> None:
        assert store.now() == clock()
        clock.advance(5)
        assert store.now() == clock()
