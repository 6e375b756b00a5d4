"""Pause and resume: a swap of the queue's flow, written down."""

import json

from tests.eyes.support import held, put
from treppe.eyes import hands
from treppe.policy import pace
from treppe.store.protocol import Wanted


def flow(store, queue="crm"):
    return pace.decode(store.journal.get(f"flow:{queue}"))


def audit(store):
    return [json.loads(record.record) for record in store.journal.page("audit")]


def test_a_paused_queue_starts_nothing_and_goes_on_accepting(store):
    hands.pause(store, "crm", "olga", "they migrate")
    put(store, "a")
    store.enlist(1, "w", 1e9)
    wanted = Wanted(1, 5, 5, frozenset({"destination:crm"}))
    assert store.claim(wanted, pace.Pacer({})).claims == ()
    assert hands.resume(store, "crm", "olga")
    assert [claim.id for claim in store.claim(wanted, pace.Pacer({})).claims] == ["a"]


def test_each_act_is_in_the_audit(store, clock):
    hands.pause(store, "crm", "olga", "they migrate")
    clock.advance(5)
    hands.resume(store, "crm", "otto")
    first, second = audit(store)
    assert first == {"by": "olga", "act": "pause", "queue": "crm", "ids": [], "note": "they migrate", "at": clock() - 5}
    assert (second["by"], second["act"]) == ("otto", "resume")


def test_what_changes_nothing_is_told_and_not_written_down(store):
    assert not hands.resume(store, "crm", "olga")
    assert hands.pause(store, "crm", "olga")
    assert not hands.pause(store, "crm", "otto")
    assert flow(store).paused.by == "olga"
    assert len(audit(store)) == 1


def test_resuming_a_queue_that_is_held_but_not_paused_ends_the_hold(store):
    held(store, "accounting", 600.0)
    assert hands.resume(store, "accounting", "olga")
    assert flow(store, "accounting").held == ""


def test_a_pause_does_not_overwrite_what_others_change_meanwhile(store):
    """The queue's pace changes with every grant; the pause is put on top of what is there by then."""
    held(store, "accounting", 60.0)
    old = store.journal.get("flow:accounting")

    class Behind:
        """A journal whose first look is out of date."""

        def __init__(self, journal):
            self.looks = [None]
            self.journal = journal

        def get(self, name):
            return self.looks.pop() if self.looks else self.journal.get(name)

        def __getattr__(self, name):
            return getattr(self.journal, name)

    class Store:
        journal, now = Behind(store.journal), store.now

    assert hands.pause(Store(), "accounting", "olga")
    assert flow(store, "accounting").held == pace.decode(old).held == "throttled"
    assert flow(store, "accounting").paused.by == "olga"
