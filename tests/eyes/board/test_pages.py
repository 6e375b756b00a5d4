"""What the pages say."""

import json

import pytest

from tests.eyes.support import claims, dead, friday, held, put, settle, unclear
from treppe.eyes import hands
from treppe.eyes.episode import Episode, Message, encode, failed, posted, trying
from treppe.job import Event, Kind, NewEvent, NewJob, Repeat, State


def link(page, href):
    return [found for found in page.all("a") if found.get("href") == href]


class TestOverview:
    def test_an_empty_store_is_calm(self, olga):
        text = olga.get().page.text
        assert "0 jobs not at their end yet" in text
        assert "nothing has to wait" in text
        assert "Nothing needs a human." in text
        assert "No job has arrived yet." in text

    def test_the_one_number_the_oldest_age_accepted_and_done(self, olga, store, clock):
        friday(store)
        clock.advance(130)
        text = olga.get().page.text
        assert "63 jobs not at their end yet" in text
        assert "2 min 10 s the oldest has been waiting" in text
        assert "accepted 160 safely stored" in text
        assert "done 95 carried out" in text

    def test_figures_equal_the_rows(self, olga, store):
        friday(store)
        summary = json.loads(olga.get("/stats.json").body)
        for queue in summary["queues"]:
            for state in (State.RUNNING, State.UNCLEAR, State.DEAD):
                listed = olga.get(f"/jobs?queue={queue['queue']}&state={state}").page.rows
                assert len(listed) == queue[state]
        assert summary["open"] + summary["dead"] + summary["done"] == summary["accepted"]

    def test_what_needs_a_human_leads_there(self, olga, store):
        friday(store)
        page = olga.get().page
        assert "3 unclear jobs" in page.text
        assert "2 dead letters" in page.text
        assert link(page, "unclear")
        assert link(page, "dead")
        assert "Nothing needs a human." not in page.text

    def test_a_held_queue_says_why_and_when_it_goes_on(self, olga, store):
        held(store, "accounting", 60.0)
        text = olga.get().page.text
        assert "accounting the other side throttles next try at" in text
        assert "in 1 min" in text

    def test_a_paused_queue_says_who_and_why(self, olga, store):
        hands.pause(store, "crm", "mara", "they migrate")
        assert "crm paused by mara: they migrate until somebody resumes it" in olga.get().page.text

    def test_it_renews_itself_unless_it_is_told_not_to(self, olga):
        assert [tag for tag in olga.get().page.all("meta") if tag.get("http-equiv") == "refresh"]
        still = olga.get("/?live=off").page
        assert not [tag for tag in still.all("meta") if tag.get("http-equiv") == "refresh"]

    def test_figures_show_their_age(self, olga, clock):
        assert "Counted just now." in olga.get().page.text
        clock.advance(3)
        assert "Counted 3 s ago." in olga.get().page.text

    def test_an_alert_that_does_not_get_through_shows_as_a_banner(self, store, figures):
        from tests.eyes.support import SETTINGS, Visitor, served
        from treppe.config import Alert, Settings
        from treppe.eyes.alert import Recipient
        from treppe.eyes.board import board

        alert = Alert("me", ("https://chat.example/hook/canary",))
        episode = posted(Episode(store.now()), Message("msg_1", "first", "s", "t"), store.now())
        episode = failed(trying(episode, store.now()), "the receiver answered 500", store.now())
        name = f"alert:dead:{Recipient(alert, alert.to[0]).name}"
        store.journal.swap(name, None, encode(episode))
        with served(board(store, Settings(web=SETTINGS.web, alerts={"me": alert}), figures)) as port:
            visitor = Visitor(port, "")
            visitor.log_in()
            page = visitor.get("/")
        assert "An alert does not get through: me to https://chat.example" in page.page.text
        assert "the receiver answered 500" in page.text
        assert "canary" not in page.text


class TestJobs:
    def test_they_come_newest_first_with_their_tokens(self, olga, store):
        for id in ("a", "b", "c"):
            put(store, id)
        claims(store, 1)
        assert olga.get("/jobs").page.rows == {"c": "0", "b": "0", "a": "1"}

    @pytest.mark.parametrize(
        ("query", "ids"),
        [
            *(
                ("state=dead", {"broken"}),
                ("state=unclear", {"asked"}),
                ("queue=stock", {"broken"}),
                ("key=k", {"keyed"}),
            ),
            *(
                ("task=destination:crm", {"keyed", "order:7"}),
                ("q=order", {"order:7"}),
                ("q=no+such+customer", {"broken"}),
            ),
            *(("state=waiting&queue=crm&q=7", {"order:7"}), ("state=done", set()), ("queue=nowhere", set())),
            *(("state=&queue=&q=", {"broken", "asked", "keyed", "order:7"}), ("q=%25", set()), ("q=order%3A_", set())),
        ],
    )
    def test_filters_narrow_the_list(self, olga, store, query, ids):
        dead(store, "broken", queue="stock")
        unclear(store, "asked")
        put(store, "keyed", key="k")
        put(store, "order:7")
        assert set(olga.get(f"/jobs?{query}").page.rows) == ids

    def test_the_form_remembers_the_filter(self, olga):
        page = olga.get("/jobs?state=dead&queue=crm&q=x%22y").page
        assert [found["value"] for found in page.all("option") if "selected" in found] == ["dead"]
        assert page.all("input", name="queue")[0]["value"] == "crm"
        assert page.all("input", name="q")[0]["value"] == 'x"y'

    def test_pages_follow_one_another_without_a_gap(self, olga, store):
        store.put([NewJob(f"job-{n:03}", "destination:crm", "crm", b"1") for n in range(120)])
        seen, path = [], "/jobs?queue=crm"
        while path:
            page = olga.get(path).page
            seen += page.rows
            older = [found["href"] for found in page.all("a", rel="next")]
            path = f"/{older[0]}" if older else ""
        assert seen == [f"job-{n:03}" for n in reversed(range(120))]

    @pytest.mark.parametrize(
        ("query", "cure"),
        [
            ("state=deed", "Choose one of: waiting, running"),
            ("after=x", "Give a whole number"),
            ("after=-1", "Give a whole number"),
            ("after=" + "9" * 30, "Give a whole number"),
            ("after=%C2%B2", "Give a whole number"),
        ],
    )
    def test_what_cannot_be_asked_is_answered_with_the_cure(self, olga, query, cure):
        answer = olga.get(f"/jobs?{query}")
        assert answer.status == 400
        assert cure in answer.page.text


class TestJob:
    def test_a_job_that_is_not_there(self, olga):
        answer = olga.get("/job?id=nothing")
        assert answer.status == 404
        assert "There is no job nothing." in answer.page.text

    @pytest.mark.parametrize("id", ["a/b?c=d&e#f", "ä ö", "%2F", "+", "'\"<>"])
    def test_any_id_can_be_followed(self, olga, store, id):
        put(store, id)
        [row] = [found for found in olga.get("/jobs").page.all("a") if found["href"].startswith("job?")]
        assert olga.get("/" + row["href"]).page.rows == {id: "0"}

    def test_why_it_waits_for_a_worker(self, olga, store):
        put(store, "a")
        assert "It is due and waits for a free worker." in olga.get("/job?id=a").page.text

    def test_why_it_waits_for_its_pace(self, olga, store):
        put(store, "a", "accounting")
        assert "runs at the pace set for it" in olga.get("/job?id=a").page.text

    def test_why_it_waits_for_its_time(self, olga, store):
        put(store, "a", delay=90.0)
        assert "in 1 min 30 s" in olga.get("/job?id=a").page.text

    def test_why_it_waits_for_its_next_attempt(self, olga, store):
        put(store, "a")
        settle(store, Event.DEFER, Kind.FAILED, *claims(store), error="the answer was 500", delay=40.0, charged=True)
        text = olga.get("/job?id=a").page.text
        assert "The last attempt failed; the next one is due at" in text
        assert "the answer was 500" in text
        assert "charged attempts 1 of 5" in text

    def test_why_it_waits_behind_another(self, olga, store):
        put(store, "first", key="k")
        put(store, "second", key="k")
        claims(store, 2)
        page = olga.get("/job?id=second").page
        assert "It waits behind first, which has the same order key." in page.text
        assert link(page, "job?id=first")

    def test_why_it_waits_while_its_queue_is_held(self, olga, store):
        put(store, "a", "accounting")
        held(store, "accounting", 60.0)
        assert "Its queue is held: the other side throttles. Next try at" in olga.get("/job?id=a").page.text

    def test_why_it_waits_while_its_queue_is_paused(self, olga, store):
        put(store, "a")
        hands.pause(store, "crm", "mara", "they migrate")
        assert "Its queue is paused by mara: they migrate." in olga.get("/job?id=a").page.text

    def test_a_job_with_two_reasons_names_both(self, olga, store):
        put(store, "a", delay=90.0)
        hands.pause(store, "crm", "mara")
        text = olga.get("/job?id=a").page.text
        assert "It is due at" in text
        assert "Its queue is paused by mara." in text

    def test_a_running_job_that_is_to_be_cancelled_says_so(self, olga, store):
        put(store, "a")
        claims(store)
        from treppe.store.protocol import Seen

        store.change([Seen("a", 1)], Event.ASK_CANCEL, "mara")
        assert "Somebody asked for the cancel" in olga.get("/job?id=a").page.text

    def test_every_attempt_with_its_outcome_and_the_answer(self, olga, store):
        put(store, "a")
        detail = json.dumps({"status": 429, "headers": {"retry-after": "60", "set-cookie": "canary"}}).encode()
        settle(store, Event.DEFER, Kind.THROTTLED, *claims(store), error="the answer was 429", detail=detail)
        settle(store, Event.DEFER, Kind.FAILED, *claims(store), error="the answer was 500", charged=True)
        settle(store, Event.FINISH, Kind.OK, *claims(store), result=b'{"number": 12345678901234567890}')
        answer = olga.get("/job?id=a")
        text = answer.page.text
        assert "tried again later throttled not charged" in text
        assert "tried again later failed charged" in text
        assert "done succeeded" in text
        assert "headers.retry-after 60" in text
        assert "12345678901234567890" in text
        assert "canary" not in answer.text

    def test_the_payload_of_an_event_with_its_headers(self, olga, store):
        event = NewEvent(
            "shop", "7", b'{"total": 1.10, "token": "canary"}', (("X-Id", "7"), ("Authorization", "canary"))
        )
        store.put([NewJob("a", "t", "q", event=("shop", "7"))], [event])
        answer = olga.get("/job?id=a")
        assert "&#34;total&#34;: 1.10,\n" in answer.text
        assert "7 from shop" in answer.page.text
        assert "X-Id 7" in answer.page.text
        assert "canary" not in answer.text

    def test_a_huge_payload_does_not_make_a_huge_page(self, olga, store):
        put(store, "a", payload=json.dumps(["x" * 100] * 2500).encode())
        answer = olga.get("/job?id=a")
        assert "Only the beginning is shown." in answer.page.text
        assert len(answer.body) < 400_000

    def test_bytes_that_are_no_text_are_shown_all_the_same(self, olga, store):
        put(store, "a", payload=b"\xff\xfe", content_type="application/octet-stream")
        assert "\\xff\\xfe" in olga.get("/job?id=a").page.text

    def test_notes_and_steps(self, olga, store):
        put(store, "a")
        [claim] = claims(store)
        store.note(claim, "step:invoice", b'{"number":"R-1","api_key":"canary"}')
        answer = olga.get("/job?id=a")
        assert "step:invoice" in answer.page.text
        assert "R-1" in answer.page.text
        assert "canary" not in answer.text

    def test_a_missed_deadline_is_marked(self, olga, store, clock):
        put(store, "a", deadline=60.0)
        assert "missed" not in olga.get("/job?id=a").page.text
        clock.advance(61)
        assert "missed" in olga.get("/job?id=a").page.text

    @pytest.mark.parametrize(
        ("make", "events"),
        [
            (lambda store: put(store, "a"), ["cancel"]),
            (lambda store: [put(store, "a"), claims(store)], ["ask_cancel"]),
            (lambda store: unclear(store, "a"), ["confirm", "revive", "bury"]),
            (lambda store: dead(store, "a"), ["revive", "confirm", "cancel"]),
            (
                lambda store: [put(store, "a"), settle(store, Event.HAND_OVER, Kind.OK, *claims(store))],
                ["confirm", "cancel"],
            ),
            (lambda store: [put(store, "a"), settle(store, Event.FINISH, Kind.OK, *claims(store))], []),
        ],
        ids=["waiting", "running", "unclear", "dead", "handed over", "done"],
    )
    def test_the_buttons_are_those_of_the_state(self, olga, vera, store, make, events):
        make(store)
        assert olga.get("/job?id=a").page.buttons == events
        assert vera.get("/job?id=a").page.buttons == []

    def test_priority_and_task_are_facts(self, olga, store):
        store.put([NewJob("a", "shop.mail", "q", b"1", priority=50, repeat=Repeat.ASK)])
        text = olga.get("/job?id=a").page.text
        assert "priority 50" in text
        assert "a human is asked first" in text


class TestDead:
    def test_nothing_is_dead(self, olga):
        assert "No dead letters." in olga.get("/dead").page.text

    def test_alike_errors_are_one_group_with_one_row_per_job(self, olga, store):
        for n in range(3):
            dead(store, f"a{n}", error=f"order {n}17: no such customer")
        dead(store, "b", error="another thing")
        page = olga.get("/dead").page
        assert set(page.rows) == {"a0", "a1", "a2", "b"}
        assert "3 jobs" in page.text
        assert page.text.index("no such customer") < page.text.index("another thing")
        assert page.buttons == ["revive", "confirm", "cancel"] * 2
        assert [found["value"] for found in page.all("input", name="id")] == ["a2", "a1", "a0", "b"]

    def test_a_button_says_how_many_it_is_for(self, olga, store):
        dead(store, "a", "b")
        assert "Revive these 2 jobs" in olga.get("/dead").page.text

    def test_a_viewer_sees_no_buttons(self, vera, store):
        dead(store, "a")
        page = vera.get("/dead").page
        assert page.rows
        assert page.buttons == []


class TestUnclear:
    def test_nothing_is_unclear(self, olga):
        assert "No unclear jobs." in olga.get("/unclear").page.text

    def test_each_job_is_a_question_of_its_own(self, olga, vera, store):
        unclear(store, "a", "b")
        page = olga.get("/unclear").page
        assert page.rows == {"b": "1", "a": "1"}
        assert [found["data-id"] for found in page.all("tr")] == ["b", "a"]
        assert page.buttons == ["confirm", "revive", "bury"] * 2
        assert "nobody knows whether it acted" in page.text
        assert vera.get("/unclear").page.buttons == []


class TestQueues:
    def test_no_queue_yet(self, olga):
        assert "No queue has been used yet." in olga.get("/queues").page.text

    def test_each_queue_can_be_paused_or_resumed(self, olga, vera, store):
        put(store, "a", "crm")
        held(store, "accounting", 60.0)
        hands.pause(store, "stock", "mara")
        page = olga.get("/queues").page
        assert "accounting held" in page.text
        assert "crm open" in page.text
        assert "stock paused" in page.text
        assert page.buttons == ["pause", "resume", "pause", "resume"]
        assert vera.get("/queues").page.buttons == []
