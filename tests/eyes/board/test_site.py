"""The board over real HTTP: who gets in, what every answer carries, what happens when something is wrong."""

import logging
import socket
import urllib.parse

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.eyes.support import SETTINGS, Visitor, friday, served, until
from treppe.config import Settings, User, Web
from treppe.errors import StoreUnavailable
from treppe.eyes.board import board
from treppe.eyes.board.gate import LASTS
from treppe.eyes.board.site import FORM_LIMIT, HEADERS

PAGES = ["/", "/jobs", "/dead", "/unclear", "/queues"]


@pytest.mark.parametrize("path", [*PAGES, "/job?id=x"])
def test_a_stranger_is_sent_to_the_login_and_then_to_the_page(stranger, path):
    answer = stranger.get(path)
    assert answer.status == 303
    login = urllib.parse.urlsplit(answer.headers["location"])
    assert login.path == "login"
    wanted = urllib.parse.parse_qs(login.query).get("next", [""])[0]
    entered = stranger.log_in(next=wanted)
    assert (entered.status, entered.headers["location"]) == (303, path.removeprefix("/") or "./")


@pytest.mark.parametrize("path", ["/act", "/queue", "/logout"])
def test_a_stranger_changes_nothing(stranger, store, path):
    friday(store)
    job = "shop:order-0021:accounting"
    before = store.get(job)
    form = {"id": job, "token": before.token, "event": "confirm", "queue": "crm", "action": "pause"}
    assert stranger.post(path, form).headers["location"] == "login"
    assert store.get(job) == before
    assert store.journal.page("audit") == []


@pytest.mark.parametrize(
    "path", [*PAGES, "/login", "/nowhere", "/board.css", "/icon.svg", "/stats.json", "/jobs?state=x"]
)
def test_every_answer_keeps_the_page_to_itself(olga, path):
    headers = olga.get(path).headers
    assert {name: headers[name] for name in HEADERS if name != "cache-control"} == {
        name: value for name, value in HEADERS.items() if name != "cache-control"
    }
    if not path.endswith((".css", ".svg")):
        assert headers["cache-control"] == "no-store"


def test_no_page_needs_or_has_scripts_or_styles_of_its_own(olga, store):
    friday(store)
    for path in [*PAGES, "/login", "/job?id=shop:order-0005:crm"]:
        page = olga.get(path).page
        assert page.all("script") == page.all("style") == []
        assert {
            name for _, found in page.elements for name in found if name == "style" or name.startswith("on")
        } == set()


def test_every_link_is_relative_and_leads_somewhere(olga, store):
    friday(store)
    links = {link["href"] for path in PAGES for link in olga.get(path).page.all("a") if "href" in link}
    assert len(links) > 50
    for link in sorted(links)[::7]:
        assert not link.startswith(("/", "http"))
        assert link.startswith("#") or olga.get("/" + link.removeprefix("./")).status == 200


def test_the_session_cookie_is_out_of_reach(stranger):
    [cookie] = [line for line in stranger.log_in().cookies if line.startswith("treppe_session=")]
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/board/", f"max-age={int(LASTS)}"} <= attributes
    assert "secure" not in attributes


def test_behind_a_proxy_with_https_the_cookie_is_secure(store, figures):
    public = Settings(web=Web(users=SETTINGS.web.users, public_url="https://board.example"))
    with served(board(store, public, figures)) as port:
        visitor = Visitor(port, "")
        page = visitor.get("/login", host="board.example").page
        form = {"csrf": page.csrf, "name": "olga", "password": "opensesame"}
        [cookie] = visitor.post("/login", form, host="board.example").cookies
    assert "secure" in cookie.lower()


def test_a_wrong_password_says_so_and_lets_nobody_in(stranger):
    answer = stranger.log_in("olga", "wrong")
    assert answer.status == 401
    assert "do not belong together" in answer.text
    assert stranger.get().status == 303


def test_the_login_form_cannot_be_posted_from_elsewhere(stranger):
    form = {"name": "olga", "password": "opensesame", "csrf": "guessed"}
    assert stranger.post("/login", form).status == 403
    stranger.get("/login")
    assert stranger.post("/login", form).status == 403
    assert "treppe_session" not in stranger.cookies


def test_after_too_many_wrong_passwords_the_right_one_has_to_wait(stranger, clock):
    for _ in range(5):
        assert stranger.log_in("olga", "wrong").status == 401
    answer = stranger.log_in()
    assert (answer.status, answer.headers["retry-after"]) == (429, "300")
    assert "Try again in 5 min" in answer.text
    clock.advance(300)
    assert stranger.log_in().status == 303


@pytest.mark.parametrize(
    "elsewhere",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "login?next=x",
        "job?a\r\nX: y",
        "jobs/../../x",
    ],
)
def test_the_login_sends_nobody_elsewhere(stranger, elsewhere):
    assert stranger.log_in(next=elsewhere).headers["location"] == "./"


@pytest.mark.parametrize("told", [{"sec_fetch_site": "cross-site"}, {}], ids=["https", "http"])
def test_a_link_from_a_mail_asks_once_more_so_that_the_cookie_comes_along(stranger, olga, told):
    first = stranger.get("/login?next=job%3Fid%3Da%252F1", **told)
    [again] = [tag["content"] for tag in first.page.all("meta") if tag.get("http-equiv") == "refresh"]
    assert again == "0; url=login?next=job%3Fid%3Da%252F1&again=1"
    second = olga.get("/login?next=job%3Fid%3Da%252F1&again=1", **told)
    assert (second.status, second.headers["location"]) == (303, "job?id=a%2F1")
    still = stranger.get("/login?next=job%3Fid%3Da%252F1&again=1", **told)
    assert [tag for tag in still.page.all("meta") if tag.get("http-equiv") == "refresh"] == []


def test_logging_out_ends_the_session_here_and_elsewhere(olga, port):
    other = Visitor(port)
    other.log_in()
    answer = olga.post("/logout", {"csrf": olga.get("/queues").page.csrf})
    assert answer.headers["location"] == "login"
    assert (olga.get().status, other.get().status) == (303, 303)


def test_logging_out_needs_the_form_token_too(olga):
    assert olga.post("/logout", {"csrf": "x"}).status == 403
    assert olga.get().status == 200


def test_a_session_ends_after_its_time(olga, clock):
    clock.advance(LASTS)
    assert olga.get().status == 303


def test_without_users_the_board_tells_how_to_name_one(store, figures):
    with served(board(store, Settings(), figures)) as port:
        visitor = Visitor(port, "")
        page = visitor.get("/login")
        assert "[user.mara]" in page.text
        assert page.page.all("form") == []
        assert visitor.post("/login", {"csrf": "x", "name": "", "password": ""}).status == 403
        assert visitor.get("/").status == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site", "origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/login", "/logout", "/act", "/queue"])
def test_a_post_from_another_site_is_refused(olga, path, headers):
    answer = olga.post(path, {"csrf": olga.get("/queues").page.csrf, "queue": "crm", "action": "pause"}, **headers)
    assert answer.status == 403
    assert "another site" in answer.text


@pytest.mark.parametrize("path", [*PAGES, "/act", "/queue", "/logout", "/job?id=shop:order-0005:crm", "/stats.json"])
def test_reading_never_writes(olga, store, path):
    friday(store)
    before = (store.backlog(), store.journal.scan(""), store.journal.page("audit"))
    query = "&" if "?" in path else "?"
    olga.get(
        f"{path}{query}event=revive&id=shop:order-0005:crm&token=1&action=pause&queue=crm&said=revive&n=1&refused=0"
    )
    assert (store.backlog(), store.journal.scan(""), store.journal.page("audit")) == before


@pytest.mark.parametrize("path", ["/act", "/queue", "/logout"])
def test_an_act_cannot_be_a_link(olga, path):
    answer = olga.get(path)
    assert answer.status == 405
    assert "cannot be used that way" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/../etc/passwd",
        "/%2e%2e%2fsite.py",
        "/static/board.css",
        "/templates/base.html",
        "/board.css/",
        "//",
        "/jobs/",
    ],
)
def test_what_is_not_there_is_not_there(olga, path):
    answer = olga.get(path)
    assert answer.status == 404
    assert "no such page" in answer.text


def test_a_store_that_does_not_answer_is_told_in_plain_words(store, figures, monkeypatch, clock):
    with served(board(store, SETTINGS, figures, clock=clock)) as port:
        visitor = Visitor(port, "")
        visitor.log_in()

        def gone():
            raise StoreUnavailable("disk I/O error in /var/lib/secret-place")

        figures.forget()
        monkeypatch.setattr(store, "backlog", gone)
        answer = visitor.get("/")
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert "The store does not answer" in answer.text
    assert "secret-place" not in answer.text


def test_a_fault_of_the_board_shows_nothing_of_its_inside(store, figures, monkeypatch, caplog, clock):
    with served(board(store, SETTINGS, figures, clock=clock)) as port:
        visitor = Visitor(port, "")
        visitor.log_in()
        monkeypatch.setattr(store, "find", lambda *_, **__: 1 / 0)
        with caplog.at_level(logging.ERROR):
            answer = visitor.get("/jobs")
    assert answer.status == 500
    assert "ZeroDivisionError" not in answer.text
    assert "ZeroDivisionError" in caplog.text


def test_a_form_that_is_too_large_is_refused(olga):
    answer = olga.post("/act", b"note=" + b"x" * FORM_LIMIT)
    assert answer.status == 413
    assert "too large" in answer.text


def test_a_form_that_never_ends_is_given_up(store, figures, monkeypatch):
    monkeypatch.setattr("treppe.eyes.board.site.FORM_TIME", 0.05)
    with served(board(store, SETTINGS, figures)) as port, socket.create_connection(("127.0.0.1", port), 10) as line:
        line.sendall(b"POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nname=")
        assert until(lambda: line.recv(100)).startswith(b"HTTP/1.1 408")


def test_a_visitor_who_leaves_in_the_middle_of_a_form_does_no_harm(store, figures, caplog):
    with served(board(store, SETTINGS, figures)) as port:
        with socket.create_connection(("127.0.0.1", port), 10) as line:
            line.sendall(b"POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nname=")
        assert Visitor(port, "").get("/login").status == 200
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("mount", ["", "/board", "/tools/queue"])
def test_it_works_at_any_prefix(store, figures, mount):
    app = board(store, SETTINGS, figures)
    with served(Starlette(routes=[Mount(mount, app)]) if mount else app) as port:
        visitor = Visitor(port, mount)
        assert visitor.log_in().status == 303
        assert visitor.cookies["treppe_session"]["path"] == f"{mount}/"
        assert visitor.get("/").status == 200
        [css] = visitor.get("/").page.all("link", rel="stylesheet")
        assert visitor.get("/" + css["href"]).headers["content-type"].startswith("text/css")


def test_a_framework_that_strips_the_prefix_is_fine(store, figures):
    """Litestar mounts so: the path without the prefix, and no root_path."""
    app = board(store, SETTINGS, figures)

    async def stripped(scope, receive, send):
        path = scope["path"].removeprefix("/board") or "/"
        await app(scope | {"path": path, "raw_path": path.encode(), "root_path": ""}, receive, send)

    with served(stripped) as port:
        visitor = Visitor(port)
        assert visitor.log_in().headers["location"] == "./"
        assert visitor.get("/jobs").status == 200


def test_the_prefix_without_its_slash_leads_to_the_overview(store, figures):
    app = board(store, SETTINGS, figures)

    async def bare(scope, receive, send):
        await app(scope | {"root_path": "/board"}, receive, send)

    with served(bare) as port:
        answer = Visitor(port, "/board").get("")
        assert (answer.status, answer.headers["location"]) == (307, "/board/")


def test_the_language_can_be_switched_and_is_remembered(olga):
    assert 'lang="en"' in olga.get("/jobs").text
    german = olga.get("/jobs?lang=de&queue=crm")
    assert "<h1>Aufträge</h1>" in german.text
    assert [link["href"] for link in german.page.all("a", lang="en")] == ["jobs?lang=en&queue=crm"]
    assert "<h1>Aufträge</h1>" in olga.get("/jobs").text
    assert "<h1>Aufträge</h1>" in olga.get("/jobs?lang=xx").text


def test_the_settings_choose_the_language(store, figures):
    with served(board(store, Settings(language="de"), figures)) as port:
        assert "Noch darf sich niemand anmelden" in Visitor(port, "").get("/login").text
    with served(board(store, Settings(), figures, "de")) as port:
        assert "Noch darf sich niemand anmelden" in Visitor(port, "").get("/login").text


def test_no_secret_of_the_settings_shows_anywhere(store, figures, caplog):
    from treppe.config import Secret

    canary = "canary-of-the-password"
    settings = Settings(web=Web(users=(User("olga", Secret(f"plain:{canary}")),)))
    friday(store)
    with served(board(store, settings, figures)) as port, caplog.at_level(logging.DEBUG):
        visitor = Visitor(port, "")
        visitor.log_in("olga", "wrong")
        visitor.log_in("olga", canary)
        seen = [
            visitor.get(path) for path in [*PAGES, "/login", "/job?id=shop:order-0005:crm", "/stats.json", "/nowhere"]
        ]
    everything = caplog.text + repr(settings) + "".join(answer.text + str(answer.headers) for answer in seen)
    assert "canary" not in everything


def test_figures_for_machines_need_the_session_too(stranger, olga, store):
    friday(store)
    assert stranger.get("/stats.json").status == 401
    answer = olga.get("/stats.json")
    assert answer.headers["content-type"] == "application/json"
    assert b'"queue":"accounting"' in answer.body
