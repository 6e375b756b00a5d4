"""Sessions: signed, bound to user, password and time; forged ones open nothing."""

import base64
import json

import pytest

from tests.eyes.support import SETTINGS
from treppe.config import Secret, User, Web
from treppe.eyes.board.gate import LASTS, Gate, own_site, same


@pytest.fixture
def gate(store, clock):
    return Gate(store, SETTINGS.web, clock)


def part(content):
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def test_the_right_password_opens_a_session(gate):
    session = gate.session(gate.enter("olga", "opensesame"))
    assert (session.user.name, session.acts) == ("olga", True)


def test_a_viewer_may_not_act(gate):
    assert not gate.session(gate.enter("vera", "onlylooking")).acts


@pytest.mark.parametrize(
    ("name", "password"),
    [
        *(("olga", "wrong"), ("olga", ""), ("nobody", "opensesame"), ("", ""), ("olga", "öpénsésame")),
        *(("olga", "\ud800"), ("OLGA", "opensesame"), ("olga", "opensesame "), ("olga\x00", "opensesame")),
    ],
)
def test_anything_else_opens_none(gate, name, password):
    assert gate.enter(name, password) is None


def test_a_password_may_hold_any_letters(store, clock):
    web = Web(users=(User("jörg", Secret("plain:grüße 😀")),))
    assert Gate(store, web, clock).enter("jörg", "grüße 😀") is not None


def test_a_session_ends_by_itself(gate, clock):
    cookie = gate.enter("olga", "opensesame")
    clock.advance(LASTS - 1)
    assert gate.session(cookie) is not None
    clock.advance(1)
    assert gate.session(cookie) is None


def test_logging_out_ends_all_sessions_of_this_user_and_no_others(gate):
    here, there = gate.enter("olga", "opensesame"), gate.enter("olga", "opensesame")
    vera = gate.enter("vera", "onlylooking")
    gate.leave(gate.session(here).user)
    assert (gate.session(here), gate.session(there)) == (None, None)
    assert gate.session(vera) is not None
    assert gate.session(gate.enter("olga", "opensesame")) is not None


def test_a_changed_password_ends_the_sessions(store, clock, gate):
    cookie = gate.enter("olga", "opensesame")
    changed = Web(users=(User("olga", Secret("plain:another")),))
    assert Gate(store, changed, clock).session(cookie) is None


def test_a_user_who_is_taken_out_is_out_at_once(store, clock, gate):
    cookie = gate.enter("olga", "opensesame")
    assert Gate(store, Web(users=SETTINGS.web.users[1:]), clock).session(cookie) is None


def test_the_role_is_that_of_the_settings_and_not_of_the_cookie(store, clock, gate):
    cookie = gate.enter("olga", "opensesame")
    demoted = Web(users=(User("olga", Secret("plain:opensesame"), "viewer"),))
    assert not Gate(store, demoted, clock).session(cookie).acts


def test_sessions_are_known_to_every_process_on_the_same_store(store, clock, gate):
    assert Gate(store, SETTINGS.web, clock).session(gate.enter("olga", "opensesame")) is not None


def test_each_session_has_a_form_token_of_its_own(gate):
    one, two = (gate.session(gate.enter("olga", "opensesame")) for _ in range(2))
    assert one.csrf != two.csrf


def test_a_cookie_that_was_touched_opens_nothing(gate):
    cookie = gate.enter("olga", "opensesame")
    for at in range(len(cookie)):
        changed = cookie[:at] + ("A" if cookie[at] != "A" else "B") + cookie[at + 1 :]
        assert changed == cookie or gate.session(changed) is None or _same_bytes(changed, cookie)


def _same_bytes(one, other):
    """Base64 has spare bits at the end of the content: another letter there spells the same bytes."""
    content = [text.partition(".")[0] for text in (one, other)]
    decoded = [base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) for text in content]
    return one.partition(".")[2] == other.partition(".")[2] and decoded[0] == decoded[1]


@pytest.mark.parametrize(
    "cookie",
    [
        *("", ".", "..", "x", "x.y", "é.ü", "." * 5000, part(["olga", 9e99, "n"]), part(["olga", 9e99, "n"]) + "."),
        *(part({"name": "olga"}) + ".x", part(["olga", "soon", "n"]) + ".x", part([1, 2, 3]) + ".x", "AAAA.AAAA"),
        *("%00.%00", "\x00.\x00", part(["nobody", 9e99, "n"]) + ".x", "[" * 600 + ".x"),
    ],
)
def test_a_forged_cookie_opens_nothing(gate, cookie):
    gate.enter("olga", "opensesame")
    assert gate.session(cookie) is None


def test_without_a_kept_key_nothing_can_be_signed(store, gate):
    """Nobody has logged in yet, so there is no key: not even an empty one opens the door."""
    assert gate.session(part(["olga", 9e99, "n"]) + "." + part([])) is None
    assert store.journal.scan("board:") == {}


def test_a_password_that_cannot_be_read_lets_nobody_in(store, clock, caplog):
    gate = Gate(store, Web(users=(User("olga", Secret("env:NOT_SET_ANYWHERE")),)), clock)
    assert gate.enter("olga", "") is None
    assert "NOT_SET_ANYWHERE" in caplog.text


def test_without_users_the_gate_is_closed(store, clock):
    gate = Gate(store, Web(), clock)
    assert gate.closed
    assert gate.enter("olga", "opensesame") is None


@pytest.mark.parametrize(
    ("origin", "site", "ours"),
    [
        *(("http://board.example:8080", None, True), ("http://board.example", None, False)),
        *(("http://evil.example", None, False), ("https://public.example", None, True), ("null", None, True)),
        *((None, None, True), (None, "same-origin", True), (None, "cross-site", False), (None, "same-site", False)),
        *(("http://board.example:8080", "cross-site", False), ("null", "same-origin", True), (None, "none", False)),
        *(("http://board.example:8080.evil.example", None, False), ("", None, False)),
    ],
)
def test_only_our_own_pages_may_post(origin, site, ours):
    assert own_site(origin, site, "board.example:8080", "https://public.example/") is ours


def test_texts_are_compared_as_bytes():
    assert same("é", "é")
    assert not same("é", "e")
    assert not same("a", "\ud800")
