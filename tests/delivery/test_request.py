"""What goes out: bytes as they came, headers that nobody can inject, secrets that nobody sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.delivery.support import claim, destination
from treppe.config import Auth, Secret
from treppe.config.parse import open_secret
from treppe.delivery import request as build
from treppe.delivery.guard import Unsendable
from treppe.job import Repeat

URL = "https://crm.example/in"
SECRET = Secret("plain:s3cret-canary")


def built(to=None, **fields):
    to = to or destination(URL)
    return build.delivery(claim(to, **fields), to, open_secret)


def header(request, name):
    return [value for key, value in request.headers if key.lower() == name.lower()]


def test_the_body_is_the_bytes_as_they_came_with_their_own_content_type():
    request = built(payload=b"\x00\xff{", content_type="text/x-odd; charset=latin-1")
    assert request.body == b"\x00\xff{"
    assert header(request, "Content-Type") == ["text/x-odd; charset=latin-1"]


@pytest.mark.parametrize("content_type", ["", " ", "a/b\r\nX-Evil: 1", "a/b\x00", "ä/b", "x" * 300])
def test_a_content_type_that_cannot_be_passed_on_is_left_out(content_type):
    request = built(content_type=content_type)
    assert header(request, "Content-Type") == []
    assert header(request, "X-Evil") == []


def test_the_coding_of_the_bytes_is_passed_on():
    request = built(headers=(("content-encoding", "gzip"),))
    assert header(request, "Content-Encoding") == ["gzip"]


def test_no_other_header_of_the_sender_is_passed_on():
    request = built(headers=(("Cookie", "a=b"), ("Authorization", "Bearer x"), ("X-Shop", "mine")))
    assert {name for name, _ in request.headers} == {
        *("User-Agent", "Accept", "Content-Type", "Accept-Encoding", "Treppe-Job-Id", "Treppe-Attempt", "Treppe-Hop")
    }


def test_the_target_learns_which_job_and_event_it_is():
    request = built(claims=4, event=("shop", "e-1"), topic="orders/paid")
    assert header(request, "Treppe-Job-Id") == ["invoice:42"]
    assert header(request, "Treppe-Attempt") == ["4"]
    assert header(request, "Treppe-Source") == ["shop"]
    assert header(request, "Treppe-Event-Id") == ["e-1"]
    assert header(request, "Treppe-Topic") == ["orders/paid"]


def test_the_idempotency_key_is_the_job_and_the_same_in_every_attempt():
    to = destination(URL, idempotency="Idempotency-Key")
    keys = {header(built(to, claims=n, token=n), "Idempotency-Key")[0] for n in range(1, 6)}
    assert keys == {"invoice:42"}


def test_no_idempotency_key_is_sent_where_none_is_documented():
    assert header(built(), "Idempotency-Key") == []


@given(st.text(min_size=1, max_size=255), st.text(min_size=1, max_size=255))
def test_any_id_becomes_a_header_value_and_two_ids_never_the_same(one, other):
    to = destination(URL, idempotency="Idempotency-Key")
    keys = [header(built(to, id=id), "Idempotency-Key")[0] for id in (one, other)]
    assert all(key.isascii() and key.isprintable() and " " not in key and len(key) <= 255 for key in keys)
    assert (keys[0] == keys[1]) == (one == other)


def test_an_id_that_would_be_too_long_for_a_key_is_hashed():
    to = destination(URL, idempotency="Idempotency-Key")
    keys = {header(built(to, id="ü" * 254 + last), "Idempotency-Key")[0] for last in "ab"}
    assert len(keys) == 2
    assert {len(key) for key in keys} == {71}


@pytest.mark.parametrize(
    ("came", "hops"),
    [((), 0), ((("treppe-hop", "1"),), 1), ((("TREPPE-HOP", "4"), ("Treppe-Hop", "2")), 4)],
)
def test_the_hop_header_counts_on_from_the_event(came, hops):
    assert build.hops(came) == hops
    assert header(built(headers=came), "Treppe-Hop") == [str(hops + 1)]


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5", "１", "99999", "1\n"])
def test_a_hop_header_that_cannot_be_read_counts_nothing(value):
    assert build.hops([("Treppe-Hop", value)]) == 0


def test_configured_headers_keep_their_spelling_and_replace_ours():
    to = destination(URL, headers=(("user-AGENT", "shop"), ("X-Shop", "1"), ("X-Shop", "2"), ("content-type", "a/b")))
    request = built(to)
    assert header(request, "User-Agent") == ["shop"]
    assert ("user-AGENT", "shop") in request.headers
    assert header(request, "X-Shop") == ["1", "2"]
    assert header(request, "Content-Type") == ["a/b"]


def test_configured_headers_cannot_replace_what_must_hold():
    to = destination(
        URL,
        headers=(("accept-encoding", "gzip"), ("treppe-hop", "0"), ("authorization", "x")),
        auth=Auth("bearer", SECRET),
    )
    request = built(to, headers=(("Treppe-Hop", "3"),))
    assert header(request, "Accept-Encoding") == ["identity"]
    assert header(request, "Treppe-Hop") == ["4"]
    assert header(request, "Authorization") == ["Bearer s3cret-canary"]


@pytest.mark.parametrize(
    "name", ["Content-Length", "transfer-encoding", "Host", "Connection", "Expect", "X Y", "X\r\nY", "", "X:"]
)
def test_a_header_that_frames_the_message_cannot_be_set(name):
    with pytest.raises(Unsendable, match="cannot be set"):
        built(destination(URL, headers=((name, "1"),)))


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\x00b", "a\x7f", "\n"])
def test_a_header_value_with_a_line_break_is_refused_and_not_shown(value):
    with pytest.raises(Unsendable, match='"X-Shop" holds a line break') as refused:
        built(destination(URL, headers=(("X-Shop", value),)))
    assert value not in str(refused.value)


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        (Auth("bearer", token=SECRET), ("Authorization", "Bearer s3cret-canary")),
        (
            Auth("basic", user="Aladdin", password=Secret("plain:open sesame")),
            ("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ),
        (Auth("header", name="X-Api-Key", value=SECRET), ("X-Api-Key", "s3cret-canary")),
    ],
)
def test_each_kind_of_login_sets_its_header(auth, expected):
    assert expected in built(destination(URL, auth=auth)).headers


@pytest.mark.parametrize("kind", ["bearer", "basic", "header"])
def test_a_login_without_its_secret_is_told(kind):
    with pytest.raises(Unsendable, match=f'kind = "{kind}" has no secret'):
        built(destination(URL, auth=Auth(kind)))


@pytest.mark.parametrize("bad", ["s3cret\r\nX-Evil: 1", "s3cret\nx", "s3cret\x00"])
def test_a_secret_that_would_break_a_header_is_refused_and_not_shown(bad):
    with pytest.raises(Unsendable) as refused:
        built(destination(URL, auth=Auth("bearer", token=Secret(f"plain:{bad}"))))
    assert "s3cret" not in str(refused.value)


def test_a_secret_that_is_not_text_is_refused_and_not_shown():
    to = destination(URL, auth=Auth("bearer", token=SECRET))
    with pytest.raises(Unsendable, match="is not text") as refused:
        build.delivery(claim(to), to, lambda _: b"s3cret\xff")
    assert "s3cret" not in str(refused.value)


def test_a_request_shows_no_header_no_body_and_no_key():
    to = destination(URL + "?key=s3cret", auth=Auth("bearer", SECRET), headers=(("X-Key", "s3cret"),))
    assert repr(built(to, payload=b"s3cret")) == "Request(POST https://crm.example/in?key=…)"


def test_everything_that_may_be_a_key_is_known_to_be_secret():
    to = destination(
        URL, auth=Auth("basic", user="me", password=SECRET), headers=(("X-Api-Key", "k3y"), ("X-Mode", "fast"))
    )
    assert set(built(to).secrets) == {"s3cret-canary", "bWU6czNjcmV0LWNhbmFyeQ==", "k3y"}


def test_only_what_may_be_repeated_may_ride_on_a_kept_connection():
    assert built(repeat=Repeat.SAFE).repeatable
    assert not built(repeat=Repeat.ASK).repeatable
    assert not built(repeat=Repeat.LOOK).repeatable


def test_a_probe_is_a_get_with_the_login_and_nothing_of_a_job():
    to = destination(URL, auth=Auth("bearer", SECRET), idempotency="Idempotency-Key")
    request = build.probe(to, "https://crm.example/ping", open_secret)
    assert (request.method, request.url, request.body, request.repeatable) == (
        "GET",
        "https://crm.example/ping",
        b"",
        True,
    )
    assert {name for name, _ in request.headers} == {"User-Agent", "Accept", "Accept-Encoding", "Authorization"}
