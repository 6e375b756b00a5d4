"""People are told: over a real store, by real mail and real webhooks, once whoever looks."""

import json
import multiprocessing
import threading

import pytest

from tests.eyes.mailbox import mailbox
from tests.eyes.support import PACER, claims, dead, held, put, settle, unclear, until
from treppe.config import Alert, Secret, Settings, Web
from treppe.errors import StoreUnavailable
from treppe.eyes import hands
from treppe.eyes.alert import Alerts, Recipient, troubles
from treppe.eyes.measure import Figures
from treppe.job import Event, Kind
from treppe.policy import pace
from treppe.store.protocol import MAX_BATCH
from treppe.store.sqlite import SQLiteStore
from treppe.testing.destination import FakeDestination, answer

ME = "mailto:me@shop.example"


class Post:
    """A channel that keeps what it is given, or fails as it is told."""

    def __init__(self):
        self.sent, self.failures = [], []

    def __call__(self, alert, to, message):
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append((alert.name, to, message))

    @property
    def subjects(self):
        return [message.subject for _, _, message in self.sent]


@pytest.fixture
def post():
    return Post()


@pytest.fixture
def alerts(store, clock, post):
    def make(*named, language="en", calm=60.0, on=store, **fields):
        named = named or (Alert("me", (ME,), **fields),)
        settings = Settings(alerts={alert.name: alert for alert in named}, language=language, web=PUBLIC)
        return Alerts(on, settings, Figures(on, PACER, clock=clock), send=post, calm=calm)

    return make


PUBLIC = Web(public_url="https://shop.example/treppe/")


def rounds(alerts, clock, seconds, every=5.0):
    """Let time pass with a round every few seconds."""
    for _ in range(round(seconds / every)):
        clock.advance(every)
        alerts.round()


def test_nothing_wrong_nothing_told(alerts, post, store):
    put(store, "a")
    assert alerts().round() == []
    assert store.journal.scan("alert:") == {}


def test_nobody_to_tell_costs_nothing(store, post):
    class Untouched:
        def __getattr__(self, name):
            raise AssertionError(name)

    assert Alerts(Untouched(), Settings(), None, send=post).round() == []


def test_a_dead_letter_is_told_at_once_with_all_there_is_to_say(alerts, post, store):
    dead(store, "shop:7:crm")
    [message] = alerts().round()
    assert post.sent == [("me", ME, message)]
    assert message.subject == "Treppe: 1 job has been given up"
    assert "Jobs: shop:7:crm\n" in message.text
    assert "Error: the CRM answered 422: no such customer\n" in message.text
    assert "Since: 2023-11-14 " in message.text
    assert "If you do nothing: they stay in the dead letters" in message.text
    assert "Look here: https://shop.example/treppe/board/job?id=shop%3A7%3Acrm\n" in message.text
    assert message.text.count("http") == 1
    assert message.facts | {"rule": "dead", "tone": "first", "total": 1, "ids": ["shop:7:crm"]} == message.facts


def test_it_is_told_once(alerts, post, store, clock):
    dead(store, "a")
    watching = alerts()
    rounds(watching, clock, 7200)
    assert len(post.sent) == 1


def test_many_dead_letters_are_one_message_with_the_first_ten_names(alerts, post, store):
    dead(store, *(f"job-{n:02}" for n in range(25)))
    [message] = alerts().round()
    assert message.subject == "Treppe: 25 jobs have been given up"
    assert "job-24, job-23, " in message.text
    assert " and 15 more\n" in message.text
    assert "Look here: https://shop.example/treppe/board/dead\n" in message.text
    assert len(message.facts["ids"]) == 10


def test_the_next_ones_wait_for_the_digest_and_come_first_there(alerts, post, store, clock):
    put(store, "early")
    dead(store, *(f"job-{n:02}" for n in range(20)), queue="stock")
    watching = alerts()
    watching.round()
    clock.advance(60)
    settle(store, Event.BURY, Kind.REFUSED, *claims(store), error="another thing")
    rounds(watching, clock, 3530)
    assert len(post.sent) == 1
    rounds(watching, clock, 20)
    digest = post.sent[1][2]
    assert digest.subject == "Treppe: Still: 21 jobs have been given up"
    assert "Jobs: early, job-19, " in digest.text
    assert "Error: another thing\n" in digest.text
    assert "New since the last message: 1\n" in digest.text
    rounds(watching, clock, 7200)
    assert len(post.sent) == 2


def test_an_old_job_that_dies_behind_hundreds_of_others_is_named(alerts, post, store, clock):
    put(store, "early")
    for batch in range(6):
        dead(store, *(f"job-{batch}-{n}" for n in range(100)), queue="stock")
    watching = alerts()
    watching.round()
    assert "600 jobs" in post.subjects[0]
    clock.advance(4000)
    settle(store, Event.BURY, Kind.REFUSED, *claims(store))
    watching.round()
    assert "Jobs: early, " in post.sent[1][2].text
    assert "New since the last message: 1\n" in post.sent[1][2].text


def test_when_all_are_dealt_with_there_is_an_all_clear(alerts, post, store, clock):
    from treppe.store.protocol import Seen

    dead(store, "a")
    watching = alerts()
    watching.round()
    store.change([Seen("a", 1)], Event.CANCEL, "mara")
    rounds(watching, clock, 60)
    assert len(post.sent) == 1
    rounds(watching, clock, 10)
    assert post.subjects[1] == "Treppe: All clear: no dead letters are left"
    assert "Since:" in post.sent[1][2].text
    assert "do nothing" not in post.sent[1][2].text
    assert store.journal.scan("alert:") == {}
    dead(store, "b")
    rounds(watching, clock, 10)
    assert post.subjects[2] == "Treppe: 1 job has been given up"


def test_unclear_jobs(alerts, post, store, clock):
    unclear(store, "a", "b")
    watching = alerts()
    [message] = watching.round()
    assert message.subject == "Treppe: 2 jobs are unclear: nobody knows whether they happened"
    assert "Jobs: b, a\n" in message.text
    assert "/board/unclear\n" in message.text
    from treppe.store.protocol import Seen

    store.change([Seen("a", 1), Seen("b", 1)], Event.CONFIRM, "mara")
    rounds(watching, clock, 75)
    assert post.subjects[1] == "Treppe: All clear: no unclear jobs are left"


def test_deadlines_are_told_at_half_and_at_the_end(alerts, post, store, clock):
    put(store, "a", deadline=1000.0)
    put(store, "b", deadline=100_000.0)
    put(store, "c")
    watching = alerts()
    rounds(watching, clock, 495)
    assert post.sent == []
    rounds(watching, clock, 10)
    assert post.subjects == ["Treppe: 1 job has used half of its deadline"]
    rounds(watching, clock, 490)
    assert len(post.sent) == 1
    rounds(watching, clock, 10)
    assert post.subjects[1] == "Treppe: 1 job has missed its deadline"
    assert "Jobs: a\n" in post.sent[1][2].text
    assert store.get("a").state == "waiting"
    settle(store, Event.FINISH, Kind.OK, *claims(store, 3))
    rounds(watching, clock, 75)
    assert set(post.subjects[2:]) == {
        "Treppe: All clear: no open job has used half of its deadline any more",
        "Treppe: All clear: no open job is past its deadline any more",
    }


def test_where_counting_stops_it_says_so(alerts, post, store, clock):
    for batch in range(7):
        store.put([new(f"job-{batch}-{n}", deadline=100.0) for n in range(100)])
    clock.advance(60)
    [message] = alerts().round()
    assert f"Counting stops at {MAX_BATCH}; there may be more." in message.text


def new(id, **fields):
    from treppe.job import NewJob

    return NewJob(id, "destination:crm", "crm", b"1", **fields)


def test_a_queue_is_told_when_it_stays_held(alerts, post, store, clock):
    held(store, "accounting", 900.0)
    watching = alerts(held_after=300.0)
    rounds(watching, clock, 295)
    assert post.sent == []
    rounds(watching, clock, 10)
    [(_, _, message)] = post.sent
    assert message.subject == "Treppe: the queue accounting is held: the other side throttles"
    assert "next at 2023-11-14 " in message.text
    assert "/board/queues\n" in message.text
    assert message.facts | {"queue": "accounting", "why": "throttled"} == message.facts
    hands.resume(store, "accounting", "mara")
    rounds(watching, clock, 75)
    assert post.subjects[1:] == ["Treppe: All clear: the queue accounting goes on"]
    assert store.journal.scan("alert:") == {}


def test_a_short_hold_is_nobodys_business(alerts, post, store, clock):
    watching = alerts()
    held(store, "accounting", 100.0)
    rounds(watching, clock, 100)
    hands.resume(store, "accounting", "mara")
    rounds(watching, clock, 600)
    assert post.sent == []
    assert store.journal.scan("alert:") == {}


def test_a_hold_that_lasts_is_told_again_with_each_digest(alerts, post, store, clock):
    held(store, "accounting", 80_000.0)
    rounds(alerts(), clock, 300 + 2 * 3600 + 10)
    assert [subject.startswith("Treppe: Still: ") for subject in post.subjects] == [False, True, True]


def test_a_pause_by_hand_is_known_to_whoever_made_it(alerts, post, store, clock):
    hands.pause(store, "crm", "mara")
    rounds(alerts(), clock, 1000)
    assert post.sent == []


def test_each_held_queue_is_an_episode_of_its_own(alerts, post, store, clock):
    for queue in ("accounting", "crm"):
        held(store, queue, 9000.0)
    watching = alerts()
    rounds(watching, clock, 310)
    hands.resume(store, "crm", "mara")
    rounds(watching, clock, 75)
    assert sorted(post.subjects) == [
        "Treppe: All clear: the queue crm goes on",
        "Treppe: the queue accounting is held: the other side throttles",
        "Treppe: the queue crm is held: the other side throttles",
    ]


def test_everybody_is_told_what_they_asked_for(alerts, post, store):
    dead(store, "a")
    unclear(store, "b")
    both = Alert("both", ("mailto:x@shop.example", "mailto:y@shop.example"))
    alerts(both, Alert("dead", (ME,), when=("dead",)), Alert("late", (ME,), when=("late",))).round()
    assert sorted((name, to, message.facts["rule"]) for name, to, message in post.sent) == [
        ("both", "mailto:x@shop.example", "dead"),
        ("both", "mailto:x@shop.example", "unclear"),
        ("both", "mailto:y@shop.example", "dead"),
        ("both", "mailto:y@shop.example", "unclear"),
        ("dead", ME, "dead"),
    ]


def test_a_channel_that_fails_holds_up_nobody_else(store, clock, post):
    dead(store, "a")
    alert = Alert("me", ("mailto:broken@shop.example", ME))
    settings = Settings(alerts={"me": alert})

    def send(alert, to, message):
        if "broken" in to:
            raise OSError("no connection")
        post(alert, to, message)

    watching = Alerts(store, settings, Figures(store, PACER, clock=clock), send=send)
    assert len(watching.round()) == 1
    [trouble] = troubles(store, settings)
    assert (trouble.target, trouble.tries, trouble.error) == ("mailto:broken@shop.example", 1, "no connection")


def test_a_message_is_tried_until_it_arrives(alerts, post, store, clock):
    dead(store, "a")
    post.failures = [OSError("no connection")] * 4
    watching = alerts()
    rounds(watching, clock, 60, every=1.0)
    assert len(post.sent) == 0
    rounds(watching, clock, 30, every=1.0)
    assert len(post.sent) == 1
    assert troubles(store, Settings(alerts={"me": Alert("me", (ME,))})) == []


def test_all_tries_of_a_message_carry_the_same_id(alerts, store, clock):
    dead(store, "a")
    ids = []

    def lost(alert, to, message):
        ids.append(message.id)
        raise OSError("the answer was lost")

    settings = Settings(alerts={"me": Alert("me", (ME,))})
    watching = Alerts(store, settings, Figures(store, PACER, clock=clock), send=lost)
    rounds(watching, clock, 100)
    assert len(ids) > 3
    assert len(set(ids)) == 1


def test_a_process_that_dies_while_sending_leaves_the_message_to_the_others(alerts, post, store, clock):
    class Killed(BaseException):
        """Not an error that could be caught: the process is gone."""

    dead(store, "a")
    post.failures = [Killed()]
    with pytest.raises(Killed):
        alerts().round()
    other = alerts()
    rounds(other, clock, 55)
    assert post.sent == []
    rounds(other, clock, 10)
    assert len(post.sent) == 1


def test_a_look_while_a_message_is_on_its_way_loses_nothing(alerts, post, store, clock):
    """Another process sees the condition end while the first one is still sending."""
    from treppe.store.protocol import Seen

    dead(store, "a")
    other = alerts(calm=1000.0)

    def send(alert, to, message):
        store.change([Seen("a", 1)], Event.CANCEL, "mara")
        clock.advance(6)
        assert other.round() == []
        post(alert, to, message)

    settings = Settings(alerts={"me": Alert("me", (ME,))})
    first = Alerts(store, settings, Figures(store, PACER, clock=clock), send=send, calm=1000.0)
    assert len(first.round()) == 1
    rounds(first, clock, 900)
    assert len(post.sent) == 1
    rounds(other, clock, 200)
    assert post.subjects[1:] == ["Treppe: All clear: no dead letters are left"]


def test_what_another_version_wrote_begins_anew(alerts, post, store, clock):
    name = f"alert:dead:{Recipient(Alert('me', (ME,)), ME).name}"
    store.journal.swap(name, None, b"\xc1 not what we write")
    dead(store, "a")
    alerts().round()
    assert len(post.sent) == 1


def test_addresses_and_their_secrets_are_not_in_the_journal(alerts, post, store):
    dead(store, "a")
    alerts(Alert("me", ("https://chat.example/hook/canary?k=canary",))).round()
    values = store.journal.scan("alert:")
    assert values
    assert "canary" not in f"{values}"


def test_a_german_shop_is_told_in_german(alerts, post, store, clock):
    dead(store, "a", "b")
    unclear(store, "c")
    held(store, "accounting", 9000.0)
    put(store, "d", deadline=10.0)
    rounds(alerts(language="de"), clock, 310)
    text = "".join(message.subject + message.text for _, _, message in post.sent)
    for told in (
        "2 Aufträge wurden aufgegeben",
        "ist ungeklärt",
        "Frist versäumt",
        "ist angehalten",
        "Wenn du nichts tust",
    ):
        assert told in text


def test_what_comes_from_outside_cannot_shape_a_message(alerts, post, store):
    dead(store, "x\u202e {0} ", error="\x1b[31mred\r\nBcc: all@evil.example\r\n" + "y" * 5000)
    [message] = alerts().round()
    assert "\x1b" not in message.text
    assert "\u202e" not in message.text
    assert "\nBcc" not in message.text
    assert "{0}" in message.text
    assert len(message.text) < 2000


def test_without_a_public_address_there_is_no_link(store, clock, post):
    dead(store, "a")
    settings = Settings(alerts={"me": Alert("me", (ME,))})
    [message] = Alerts(store, settings, Figures(store, PACER, clock=clock), send=post).round()
    assert "Look here" not in message.text


def test_rounds_go_on_whatever_happens_to_the_store(alerts, post, store, monkeypatch, caplog):
    dead(store, "a")
    scan, outages = store.journal.scan, [StoreUnavailable("disk full")] * 3

    def flaky(prefix, n=1000):
        if outages:
            raise outages.pop()
        return scan(prefix, n)

    monkeypatch.setattr(store.journal, "scan", flaky)
    watching, stop = alerts(), threading.Event()
    thread = threading.Thread(target=watching.watch, args=(stop, 0.001))
    thread.start()
    until(lambda: post.sent)
    stop.set()
    thread.join(5)
    assert "alerts wait for the store: disk full" in caplog.text


def test_a_stop_ends_the_sending_between_two_messages(alerts, post, store):
    dead(store, "a")
    unclear(store, "b")
    stop = threading.Event()
    watching = alerts()
    watching._send = lambda *message: (post(*message), stop.set())
    assert len(watching.round(stop)) == 1
    assert len(post.sent) == 1


def test_by_mail_and_by_webhook_for_real(store, clock):
    dead(store, "shop:7:crm")
    with mailbox() as box, FakeDestination(answer(500), answer(204)) as chat:
        alert = Alert(
            "me",
            (ME, f"{chat.url}hook"),
            secret=Secret("plain:hush"),
            smtp=f"smtp://127.0.0.1:{box.port}",
            allow_http=True,
            allow_networks=("127.0.0.0/8",),
        )
        settings = Settings(alerts={"me": alert})
        watching = Alerts(store, settings, Figures(store, PACER, clock=clock))
        assert [message.subject for message in watching.round()] == ["Treppe: 1 job has been given up"]
        assert troubles(store, settings)[0].error == "the receiver answered 500"
        clock.advance(5)
        assert len(watching.round()) == 1
        assert watching.round() == []
    assert "shop:7:crm" in box.mails[0].get_content()
    first, second = (call.header("webhook-id") for call in chat.calls)
    assert first == second
    assert "shop:7:crm" in json.loads(chat.calls[1].body)["data"]["text"]


def test_a_channel_there_is_none_for_is_a_trouble_like_any_other(store, clock):
    dead(store, "a")
    settings = Settings(alerts={"me": Alert("me", ("pigeon:loft",))})
    assert Alerts(store, settings, Figures(store, PACER, clock=clock)).round() == []
    assert "alerts cannot go by pigeon" in troubles(store, settings)[0].error


def _look(path, port, ready, go):
    """What one worker process of many does."""
    store = SQLiteStore(path, durable=False)
    alert = Alert("me", (f"http://127.0.0.1:{port}/",), allow_http=True, allow_networks=("127.0.0.0/8",))
    alerts = Alerts(store, Settings(alerts={"me": alert}), Figures(store, pace.Pacer({}), keep=0.0))
    ready.release()
    go.wait(20)
    for _ in range(20):
        alerts.round()
    store.close()


def test_of_many_processes_exactly_one_sends(tmp_path):
    store = SQLiteStore(tmp_path / "shared.db", durable=False)
    store.migrate()
    dead(store, "a")
    unclear(store, "b")
    spawn = multiprocessing.get_context("spawn")
    ready, go = spawn.Semaphore(0), spawn.Event()
    with FakeDestination() as chat:
        arguments = (str(tmp_path / "shared.db"), chat.port, ready, go)
        processes = [spawn.Process(target=_look, args=arguments) for _ in range(4)]
        for process in processes:
            process.start()
        for _ in processes:
            assert ready.acquire(timeout=30)
        go.set()
        for process in processes:
            process.join(30)
        rules = sorted(json.loads(call.body)["data"]["rule"] for call in chat.calls)
    store.close()
    assert [process.exitcode for process in processes] == [0] * 4
    assert rules == ["dead", "unclear"]


def test_threads_of_one_process_share_the_work_too(store, clock, post):
    dead(store, "a")
    settings = Settings(alerts={"me": Alert("me", (ME,))})
    gate = threading.Barrier(6)

    def look():
        alerts = Alerts(store, settings, Figures(store, PACER, clock=clock), send=post)
        gate.wait(5)
        for _ in range(10):
            alerts.round()

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(post.sent) == 1
