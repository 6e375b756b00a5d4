"""Buttons: each act hits the job as it was seen, is in the audit, and is refused otherwise."""

import json

import pytest

from tests.eyes.support import claims, dead, put, settle, unclear
from treppe.job import Event, Kind, State
from treppe.policy import pace
from treppe.store.protocol import MAX_BATCH


def audit(store):
    return [json.loads(record.record) for record in store.journal.page("audit")]


def told(visitor, answer):
    """What the page says to which an act leads."""
    assert answer.status == 303
    page = visitor.get("/" + answer.headers["location"].removeprefix("./"))
    assert page.status == 200
    return page.page.text


@pytest.mark.parametrize(
    ("event", "state", "said"),
    [
        ("confirm", State.DONE, "1 job is done."),
        ("revive", State.WAITING, "1 job will run again."),
        ("bury", State.DEAD, "1 job is a dead letter now."),
        ("cancel", State.CANCELLED, "1 job is cancelled."),
    ],
)
def test_an_unclear_job_is_decided(olga, store, event, state, said):
    unclear(store, "a")
    answer = olga.act(event, ("a", "1"), note="it is in their ledger")
    assert said in told(olga, answer)
    assert store.get("a").state is state
    assert (
        audit(store)[0] | {"by": "olga", "act": event, "ids": ["a"], "note": "it is in their ledger"} == audit(store)[0]
    )


def test_dead_letters_are_revived_together(olga, store):
    dead(store, "a", "b", "c")
    answer = olga.act("revive", ("a", "1"), ("b", "1"), ("c", "1"), back="dead")
    assert "3 jobs will run again." in told(olga, answer)
    assert {store.get(id).state for id in "abc"} == {State.WAITING}
    assert audit(store)[0]["ids"] == ["a", "b", "c"]


def test_a_dead_letter_is_discarded(olga, store):
    dead(store, "a")
    assert "1 job is cancelled." in told(olga, olga.act("cancel", ("a", "1"), back="dead"))
    assert store.get("a").state is State.CANCELLED


def test_done_by_hand_needs_a_note(olga, store):
    dead(store, "a")
    answer = olga.act("confirm", ("a", "1"), back="dead")
    assert answer.status == 422
    assert "who did it and how" in answer.page.text
    assert store.get("a").state is State.DEAD
    assert "1 job is done." in told(olga, olga.act("confirm", ("a", "1"), note="booked by hand, R-17", back="dead"))
    assert (store.get("a").state, audit(store)[0]["note"]) == (State.DONE, "booked by hand, R-17")


def test_a_running_job_is_asked_to_end(olga, store):
    put(store, "a")
    claims(store)
    assert "The cancel of 1 job was asked for." in told(olga, olga.act("ask_cancel", ("a", "1"), back=""))
    assert store.get("a").cancelling


def test_a_waiting_job_is_cancelled_from_its_own_page(olga, store):
    put(store, "a b/c")
    answer = olga.act("cancel", ("a b/c", "0"), back="job")
    assert answer.headers["location"].startswith("job?id=a+b%2Fc&")
    assert "1 job is cancelled." in told(olga, answer)


def test_a_job_that_has_changed_meanwhile_is_left_as_it_is(olga, store):
    unclear(store, "a")
    olga.act("revive", ("a", "1"))
    settle(store, Event.DOUBT, Kind.UNCLEAR, *claims(store))
    answer = olga.act("confirm", ("a", "1"), note="x")
    assert "Refused: 1 job has changed meanwhile" in told(olga, answer)
    assert store.get("a").state is State.UNCLEAR
    assert [record["act"] for record in audit(store)] == ["revive"]


def test_of_several_jobs_only_the_changed_ones_are_refused(olga, store):
    dead(store, "a", "b")
    answer = olga.act("revive", ("a", "1"), ("b", "0"), back="dead")
    text = told(olga, answer)
    assert "1 job will run again." in text
    assert "Refused: 1 job has changed meanwhile" in text
    assert (store.get("a").state, store.get("b").state) == (State.WAITING, State.DEAD)


@pytest.mark.parametrize("event", ["revive", "bury", "confirm"])
def test_what_the_state_does_not_allow_is_refused(olga, store, event):
    put(store, "a")
    settle(store, Event.FINISH, Kind.OK, *claims(store))
    assert "Refused" in told(olga, olga.act(event, ("a", "1"), note="x"))
    assert store.get("a").state is State.DONE
    assert audit(store) == []


def test_pressing_twice_acts_once(olga, store):
    dead(store, "a")
    page = olga.get("/dead").page
    form = {"csrf": page.csrf, "id": "a", "token": page.rows["a"], "event": "revive", "note": ""}
    assert [told(olga, olga.post("/act", form)).count("Refused") for _ in range(2)] == [0, 1]
    assert len(audit(store)) == 1


def test_the_buttons_of_the_page_work_as_they_are(olga, store):
    """What a browser would send: every hidden field of the form, and the button."""
    unclear(store, "a")
    page = olga.get("/unclear").page
    fields = {found["name"]: found["value"] for found in page.all("input", type="hidden")}
    assert fields.keys() == {"csrf", "back", "id", "token"}
    assert "1 job is done." in told(olga, olga.post("/act", fields | {"note": "", "event": page.buttons[0]}))


@pytest.mark.parametrize("path", ["/act", "/queue"])
def test_a_viewer_may_not_act(vera, store, path):
    dead(store, "a")
    form = {"csrf": vera.get("/queues").page.csrf, "id": "a", "token": "1", "event": "revive"}
    answer = vera.post(path, form | {"queue": "crm", "action": "pause"})
    assert answer.status == 403
    assert "Your role is “viewer”" in answer.page.text
    assert store.get("a").state is State.DEAD
    assert audit(store) == []


@pytest.mark.parametrize("csrf", ["", "x", "é", "A" * 43])
@pytest.mark.parametrize("path", ["/act", "/queue"])
def test_without_the_token_of_the_session_nothing_is_done(olga, store, path, csrf):
    dead(store, "a")
    form = {"csrf": csrf, "id": "a", "token": "1", "event": "revive", "queue": "crm", "action": "pause"}
    answer = olga.post(path, form)
    assert answer.status == 403
    assert "not from your session" in answer.page.text
    assert audit(store) == []


def test_the_token_of_another_session_does_not_count(olga, vera, store):
    dead(store, "a")
    assert olga.act("revive", ("a", "1"), csrf=vera.get("/queues").page.csrf).status == 403


@pytest.mark.parametrize(
    ("form", "status", "cure"),
    [
        *(({"event": "finish"}, 400, "Choose one of: confirm"), ({"event": ""}, 400, "Choose one of: confirm")),
        *(({"token": "x"}, 400, "Give a whole number"), ({"token": "-1"}, 400, "Give a whole number")),
        *(({"token": ""}, 400, "Give a whole number"), ({"token": "9" * 40}, 400, "Give a whole number")),
        *(({"id": None}, 400, "Name at least one job"), ({"token": None}, 400, "one token for each id")),
        *(
            ({"note": "x" * 501}, 422, "At most 500 characters"),
            ({"id": ["a"] * 501, "token": ["1"] * 501}, 400, "At most 500"),
        ),
    ],
)
def test_a_form_that_makes_no_sense_is_answered_with_the_cure(olga, store, form, status, cure):
    dead(store, "a")
    fields = {"csrf": olga.get("/queues").page.csrf, "id": "a", "token": "1", "event": "revive"} | form
    pairs = [
        (name, one)
        for name, value in fields.items()
        for one in (value if isinstance(value, list) else [value])
        if one is not None
    ]
    answer = olga.post("/act", pairs)
    assert answer.status == status
    assert cure in answer.page.text
    assert store.get("a").state is State.DEAD


def test_the_largest_form_still_fits(olga, store):
    ids = [f"{n:03}" + "ü" * 82 for n in range(MAX_BATCH)]
    for start in range(0, MAX_BATCH, 100):
        dead(store, *ids[start : start + 100])
    answer = olga.act("revive", *((id, "1") for id in ids), back="dead")
    assert f"{MAX_BATCH} jobs will run again." in told(olga, answer)


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "login", "../x"])
def test_an_act_leads_nowhere_else(olga, store, back):
    dead(store, "a")
    assert olga.act("revive", ("a", "1"), back=back).headers["location"].startswith("job?id=a&")


@pytest.mark.parametrize(
    "query",
    [
        "said=<script>&n=1&refused=0",
        "said=revive&n=x&refused=0",
        "said=revive",
        "said=login",
        "said=revive&n=99999&refused=0",
    ],
)
def test_a_link_cannot_make_the_board_say_what_was_not_done(olga, query):
    assert olga.get(f"/dead?{query}").page.all("p", role="status") == []


class TestQueue:
    def press(self, visitor, action, queue="crm", note=""):
        form = {"csrf": visitor.get("/queues").page.csrf, "queue": queue, "action": action, "note": note}
        return visitor.post("/queue", form)

    def test_it_is_paused_and_resumed(self, olga, store):
        put(store, "a")
        assert "The queue is paused." in told(olga, self.press(olga, "pause", note="they migrate"))
        assert pace.decode(store.journal.get("flow:crm")).paused.note == "they migrate"
        assert "The queue goes on." in told(olga, self.press(olga, "resume"))
        assert pace.decode(store.journal.get("flow:crm")).paused is None
        assert [(record["by"], record["act"], record["queue"]) for record in audit(store)] == [
            ("olga", "pause", "crm"),
            ("olga", "resume", "crm"),
        ]

    def test_pausing_twice_says_so(self, olga, store):
        self.press(olga, "pause")
        assert "in that state already" in told(olga, self.press(olga, "pause"))

    @pytest.mark.parametrize(
        ("action", "queue"),
        [("stop", "crm"), ("", "crm"), ("pause", ""), ("pause", "CRM"), ("pause", "a'; --"), ("pause", "a" * 129)],
    )
    def test_what_is_no_queue_or_no_act_is_refused(self, olga, store, action, queue):
        assert self.press(olga, action, queue).status == 400
        assert store.journal.scan("flow:") == {}
