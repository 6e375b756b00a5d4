"""Nothing from outside becomes part of a page: the same page with harmless words has the same elements.

The kinds of attack are those that got through in other dashboards, e.g. rq-dashboard#526, flower#594, sidekiq#2309.
"""

import json
import urllib.parse

import pytest

from tests.eyes.support import claims, settle
from treppe.eyes import hands
from treppe.job import Event, Kind, NewEvent, NewJob, Repeat

ATTACKS = [
    "<script>window.__xss=1</script>",
    "</pre></script><script>window.__xss=1</script>",
    '"><img src=x onerror=window.__xss=1>',
    "' onmouseover='window.__xss=1' x='",
    "javascript:window.__xss=1",
    "<svg/onload=window.__xss=1>",
    "<style>*{background:url(https://evil.example)}</style>",
    '<meta http-equiv="refresh" content="0;url=https://evil.example">',
    "<base href=https://evil.example>",
    "<form action=https://evil.example><button name=csrf>",
    "</title><iframe srcdoc='<script>window.__xss=1</script>'>",
    "</textarea><textarea autofocus onfocus=window.__xss=1>",
    "{{ 7 * 7 }}{% raw %}{0.__class__}",
    "%3Cscript%3Ewindow.__xss=1%3C/script%3E",
    "＜script＞\u202e<!-- -->",
]
HARMLESS = "harmless"


def fill(store, text):
    """Put *text* into everything that comes from outside: jobs in every state, an event, notes, a pause."""
    event = NewEvent("shop", text, json.dumps({text: [text]}).encode(), ((text, text),), text, text)
    fields = {"task": text, "queue": "crm", "key": f"{text} k", "event": ("shop", text), "repeat": Repeat.ASK}
    store.put([NewJob(f"{text} {n}", **(fields | {"key": f"{text} {n}"})) for n in range(4)], [event])
    store.put([NewJob(f"{text} own", text, "crm", text.encode(), content_type=text)])
    store.enlist(7, text, 1e9)
    from treppe.policy.pace import Pacer
    from treppe.store.protocol import Wanted

    dead, unclear, running, waiting, own = store.claim(Wanted(7, 5, 5, frozenset({text})), Pacer({})).claims
    detail = json.dumps({"status": text, "headers": {text: text}, "answer": text}).encode()
    store.note(own, text, json.dumps({text: text}).encode())
    settle(store, Event.BURY, Kind.REFUSED, dead, error=text, detail=detail)
    settle(store, Event.DOUBT, Kind.UNCLEAR, unclear, error=text, detail=text.encode())
    settle(store, Event.DEFER, Kind.FAILED, waiting, error=f"{text}\n{text}", detail=detail, delay=60.0)
    settle(store, Event.FINISH, Kind.OK, own, result=text.encode())
    hands.pause(store, "crm", text, text)
    from treppe.store.protocol import Seen

    store.change([Seen(running.id, running.token)], Event.ASK_CANCEL, text, text)


def addresses(text):
    """Every page that shows what was filled in, and every parameter a link may carry."""
    jobs = [f"/job?id={urllib.parse.quote(f'{text} {n}', safe='')}" for n in (0, 1, 2, 3, "own")]
    names = ("state", "queue", "task", "key", "q", "after", "lang", "said", "n", "refused", "next", "live", "id", "x")
    asked = urllib.parse.quote(text, safe="")
    lists = ["/", "/jobs", "/dead", "/unclear", "/queues", "/jobs?state=dead"]
    return (
        jobs
        + lists
        + [f"{page}?{name}={asked}" for name in names for page in ("/jobs", "/dead", "/login", "/job", "/")]
    )


def shape(visitor, path):
    """The elements of a page with the names of their attributes, and where it may send a form or a visitor."""
    page = visitor.get(path).page
    elements = [(tag, tuple(found)) for tag, found in page.elements]
    targets = {
        found[name].split("?")[0].split("#")[0]
        for _, found in page.elements
        for name in ("action", "href", "src")
        if name in found
    }
    refreshes = [found["content"] for found in page.all("meta") if found.get("http-equiv")]
    return elements, targets, refreshes


@pytest.mark.parametrize("text", ATTACKS)
def test_what_comes_from_outside_stays_text(olga, store, text):
    fill(store, HARMLESS)
    wanted = {}
    for plain, path in zip(addresses(HARMLESS), addresses(text), strict=True):
        wanted[path] = shape(olga, plain)
    for id in [f"{HARMLESS} {n}" for n in (0, 1, 2, 3, "own")]:
        assert store.get(id) is not None
    clear(store)
    fill(store, text)
    for path in addresses(text):
        assert shape(olga, path) == wanted[path], path


def clear(store):
    store.journal.swap("flow:crm", store.journal.get("flow:crm"), None)
    tables = ("job", "live", "dead", "attempt", "note", "event", "slot", "worker", "count")
    store._database.write(lambda db: [db.execute(f"DELETE FROM treppe_{table}") for table in tables])


def test_the_attack_is_there_to_be_read(olga, store):
    fill(store, ATTACKS[0])
    text = olga.get(f"/job?id={urllib.parse.quote(ATTACKS[0] + ' 0')}").text
    assert text.count("&lt;script&gt;window.__xss=1&lt;/script&gt;") >= 8
    assert "<script" not in text


@pytest.mark.parametrize("text", ATTACKS)
def test_what_a_form_says_stays_text(olga, store, text):
    csrf = olga.get("/queues").page.csrf
    for form in (
        {"event": text},
        {"event": "revive", "id": "a", "token": text},
        {"event": "revive", "id": text, "token": "1", "note": text},
    ):
        answer = olga.post("/act", {"csrf": csrf} | form)
        if answer.status == 303:
            answer = olga.get("/" + answer.headers["location"])
        assert (
            answer.page.all("script")
            == answer.page.all("img")
            == answer.page.all("iframe")
            == answer.page.all("base")
            == []
        )
    for form in ({"name": text, "password": text}, {"csrf": text}, {"next": text}):
        answer = olga.post("/login", form)
        assert answer.page.all("script") == answer.page.all("img") == []


def test_direction_marks_in_an_id_are_seen_and_the_id_still_works(olga, store):
    id = "invoice\u202e24"
    store.put([NewJob(id, "destination:crm", "crm", b"1")])
    claimed = claims(store)
    settle(store, Event.DOUBT, Kind.UNCLEAR, *claimed)
    page = olga.get("/unclear")
    assert "invoice\\u202e24" in page.page.text
    assert page.page.rows == {id: "1"}
    assert olga.act("confirm", (id, "1")).headers["location"].startswith("unclear?said=confirm&n=1")
