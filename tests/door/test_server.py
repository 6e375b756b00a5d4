"""The door over real sockets: slow, huge and broken requests, with both parsers and on the short way."""

import asyncio
import json
import socket
import sys
import threading
import time
from contextlib import suppress

import pytest

from tests.door.live import Client, request, serving, until
from tests.door.support import DESTINATIONS, Sent, shop, signed
from treppe.config import Source, Web
from treppe.door.guard import MAX_HEAD_BYTES, Guard
from treppe.door.server import listen, serve
from treppe.door.webhook import Door
from treppe.errors import ConfigError
from treppe.intake import Batcher, Intake
from treppe.store.sqlite import SQLiteStore

EVENT_ID = "e1:orders/paid:a.example"
QUICK = Web(port=0, header_timeout=0.3, body_timeout=0.3)
CALM = Web(port=0)


@pytest.fixture(params=["httptools", "h11"])
def parser(request):
    return request.param


@pytest.fixture(params=["httptools", "h11", "short"])
def served(door_of, request):
    """Makes running servers with a door."""

    def run(web=QUICK, source=None, **options):
        door = door_of(source)
        return serving(Guard(door, web, door.max_body), web, **way(request.param, door), **options)

    return run


def way(name, door):
    """How a server gets to the door: a parser and ASGI, or the short way."""
    return {"parser": "httptools", "shortcuts": door.shortcuts} if name == "short" else {"parser": name}


@pytest.fixture(scope="module", params=["httptools", "h11", "short"])
def open_door(request, tmp_path_factory):
    """One server for many requests, with a source that believes everybody; its address and store."""
    store = SQLiteStore(tmp_path_factory.mktemp("open") / "jobs.db", durable=False)
    store.migrate()
    batcher = Batcher(Intake(store))
    door = Door({"open": Source("open", verify="none", send_to=("crm",))}, DESTINATIONS, batcher, store.journal)
    with serving(Guard(door, QUICK, door.max_body), QUICK, **way(request.param, door)) as address:
        batcher._thread.submit(int).result()  # its thread starts here, not when a slow disk first needs it in some test
        yield address, store
    batcher.close()
    store.close()


def still_works(address, event_id=b"later"):
    with Client(address) as client:
        client.send(request(signed(b"{}", event_id=event_id)))
        return client.answer()[0] == 202


def stored(store):
    return store.backlog().accepted


# Good requests


def test_a_webhook_over_http_is_stored(served, store):
    with served() as address, Client(address) as client:
        client.send(request(signed(b'{"id": 1}')))
        status, headers, body = client.answer()
    assert (status, headers[b"content-type"]) == (202, b"application/json")
    assert json.loads(body) == {"id": EVENT_ID, "state": "accepted", "duplicate": False}
    assert b"server" not in headers
    assert store.event("shop", EVENT_ID).body == b'{"id": 1}'


def test_one_connection_serves_many_requests(served, store):
    with served(CALM) as address, Client(address) as client:
        for number in range(20):
            client.send(request(signed(b"{}", event_id=b"e%d" % number)))
            assert client.answer()[0] == 202
    assert stored(store) == 20


def test_one_connection_is_refused_as_often_as_it_likes(served):
    with served() as address, Client(address) as client:
        for _ in range(60):  # together more than the bytes that one head may have
            client.send(request(Sent(headers=[(b"x-shopify-hmac-sha256", b"x" * 300)])))
            assert client.answer()[0] == 401


def test_a_request_in_two_pieces_means_the_same_wherever_it_is_cut(served, store):
    raw = request(signed(b'{"id": 1}'))
    with served(CALM) as address, Client(address) as client:
        for cut in range(1, len(raw), 7):
            client.send(raw[:cut])
            assert not client.answered_within(0.002)  # time to read the first piece alone
            client.send(raw[cut:])
            status, _, body = client.answer()
            assert (status, json.loads(body)["id"]) == (202, EVENT_ID)
    assert stored(store) == 1


def test_a_large_body_in_many_pieces_arrives_whole_after_a_small_one_in_one(served, store):
    large = b'{"id": 2, "x": "' + b"x" * 300_000 + b'"}'
    with served(CALM) as address, Client(address) as client:
        for number, body in enumerate((b"{}", large, b"{}")):
            client.send(request(signed(body, event_id=b"e%d" % number)))
            assert client.answer()[0] == 202
    assert store.event("shop", "e1:orders/paid:a.example").body == large


def test_pipelined_requests_are_answered_in_their_order(served, store):
    with served() as address, Client(address) as client:
        client.send(b"".join(request(signed(b"%d" % n, event_id=b"e%d" % n)) for n in range(20)))
        ids = [json.loads(client.answer()[2])["id"] for _ in range(20)]
    assert ids == [f"e{n}:orders/paid:a.example" for n in range(20)]
    assert stored(store) == 20


def test_a_body_of_five_mebibytes_arrives_whole(served, store):
    body = bytes(range(256)) * (5 << 12)
    with served(CALM) as address, Client(address) as client:
        client.send(request(signed(body)))
        assert client.answer()[0] == 202
    assert store.event("shop", EVENT_ID).body == body


def test_chunks_are_put_together(served, store):
    head, _, _ = request(signed(b"abcdef")).partition(b"content-length")
    with served() as address, Client(address) as client:
        client.send(head + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n4;x=y\r\ncdef\r\n0\r\n\r\n")
        assert client.answer()[0] == 202
    assert store.event("shop", EVENT_ID).body == b"abcdef"


def test_who_waits_for_100_continue_gets_it(served):
    head, _, body = request(signed(b"{}"), (b"expect", b"100-continue")).partition(b"\r\n\r\n")
    with served(CALM) as address, Client(address) as client:
        client.send(head + b"\r\n\r\n")
        assert client.answer()[0] == 100
        client.send(body)
        assert client.answer()[0] == 202


def test_a_wish_for_http2_is_passed_over_and_the_webhook_taken(served, store):
    """Java's HttpClient asks for h2c with every POST."""
    wish = ((b"connection", b"Upgrade, HTTP2-Settings"), (b"upgrade", b"h2c"), (b"http2-settings", b"AAMAAABk"))
    bodies = [b"{}", b"", b"x" * 1_000_000]
    with served(CALM) as address:
        for number, body in enumerate(bodies):
            with Client(address) as client:
                raw = request(signed(body, event_id=b"e%d" % number), *wish)
                client.send(raw[:60])
                client.send(raw[60:])
                assert client.answer()[0] == 202
                assert store.event("shop", f"e{number}:orders/paid:a.example").body == body


def test_a_thousand_wishes_in_one_piece_are_passed_over_one_by_one(served):
    wish = b"GET /in/shop HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    with served(CALM) as address, Client(address) as client:
        client.send(wish * 1000)
        assert {client.answer()[0] for _ in range(1000)} == {200}


def test_nobody_gets_through_to_somewhere_else(served):
    with served(CALM) as address, Client(address) as client:
        client.send(b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n")
        assert client.answer()[0] in (404, 405)
        assert still_works(address)


def test_http_1_0_is_answered_and_closed(served):
    with served(CALM) as address, Client(address) as client:
        client.send(request(signed(b"{}"), version=b"1.0"))
        assert b" 202 " in client.rest()


def test_head_and_body_of_an_answer_leave_together(served):
    with served() as address, Client(address) as client:
        client.send(request(signed(b"{}")))
        first = client.socket.recv(65536)
    assert first.endswith(b'"duplicate":false}')


# Slow


def test_a_connection_that_says_nothing_is_closed(served):
    with served() as address, Client(address) as client:
        assert client.rest() == b""
        assert still_works(address)


@pytest.mark.parametrize("head", [b"P", b"POST /in/shop HTTP/1.1\r\n", b"POST /in/shop HTTP/1.1\r\nhost: x\r\nx-a: "])
def test_a_head_that_never_ends_is_408_and_closed(served, store, head):
    with served() as address, Client(address) as client:
        client.send(head)
        assert client.answer()[0] == 408
        assert client.rest() == b""
        assert still_works(address)
    assert stored(store) == 1


def test_a_head_that_drips_is_closed_in_time_in_total(served):
    with served() as address, Client(address) as client:
        began = time.monotonic()
        client.drip(b"POST /in/shop HTTP/1.1\r\n" + b"x-a: b\r\n" * 500, 0.02)
        took = time.monotonic() - began
        assert b" 408 " in client.rest()[:20]
    assert took < 5


def test_empty_lines_do_not_keep_a_connection_open(served):
    with served() as address, Client(address) as client:
        client.send(request(signed(b"{}")))
        client.answer()
        began = time.monotonic()
        client.drip(b"\r\n" * 500, 0.02)
        client.rest()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("framing", [b"content-length: 1000", b"transfer-encoding: chunked"])
def test_a_body_that_never_comes_is_408_and_closed(served, store, framing):
    head, _, _ = request(signed(b"")).partition(b"content-length")
    with served() as address, Client(address) as client:
        client.send(head + framing + b"\r\n\r\n")
        status, headers, _ = client.answer()
        assert (status, headers[b"connection"]) == (408, b"close")
        assert client.rest() == b""
    assert stored(store) == 0


@pytest.mark.parametrize(
    ("framing", "drops"), [(b"content-length: 1000", b"x" * 1000), (b"transfer-encoding: chunked", b"1\r\nx\r\n" * 200)]
)
def test_a_body_that_drips_is_408_in_time_in_total(served, store, framing, drops):
    head, _, _ = request(signed(b"")).partition(b"content-length")
    with served() as address, Client(address) as client:
        client.send(head + framing + b"\r\n\r\n")
        began = time.monotonic()
        client.drip(drops, 0.02)
        assert client.answer()[0] == 408
    assert time.monotonic() - began < 5
    assert stored(store) == 0


def test_a_body_that_drips_after_an_early_answer_is_cut_off_too(parser):
    async def hasty(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    with serving(hasty, QUICK, parser=parser) as address, Client(address) as client:
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
        assert client.answer()[0] == 200
        began = time.monotonic()
        client.drip(b"x" * 1000, 0.02)
        client.rest()
    assert time.monotonic() - began < 5


def test_the_guard_watches_the_time_itself_behind_another_server(door_of, parser):
    """As behind any ASGI server that does not say that it does."""
    app = Guard(door_of(), QUICK)

    async def forgetful(scope, receive, send):
        scope["state"] = {}
        await app(scope, receive, send)

    with serving(forgetful, CALM, parser=parser) as address, Client(address) as client:
        client.send(request(signed(b"x" * 100))[:-1])
        status, _, body = client.answer()
    assert (status, json.loads(body)["detail"]) == (408, "The body was not there within 0.3 s")
    assert app.refused == {408: 1}


def test_an_idle_connection_is_closed_after_a_while(served, monkeypatch):
    monkeypatch.setattr("treppe.door.server.KEEP_ALIVE", 0.2)
    with served(CALM) as address, Client(address) as client:
        client.send(request(signed(b"{}")))
        assert client.answer()[0] == 202
        assert client.rest() == b""


def test_the_next_request_on_a_connection_has_its_own_time(served):
    with served() as address, Client(address) as client:
        for number in range(3):
            raw = request(signed(b"{}", event_id=b"e%d" % number))
            client.send(raw[:30])
            assert not client.answered_within(0.2)  # of 0.3, each time anew
            client.send(raw[30:])
            assert client.answer()[0] == 202


def test_a_head_that_begins_as_the_idle_time_ends_is_not_cut_off(served, monkeypatch):
    monkeypatch.setattr("treppe.door.server.KEEP_ALIVE", 0.3)
    raw = request(signed(b"{}"))
    with served(CALM) as address, Client(address) as client:
        client.send(raw)
        assert client.answer()[0] == 202
        assert not client.answered_within(0.2)
        client.send(raw[:40])
        assert not client.answered_within(0.3)  # beyond the idle time, but this is no idle connection
        client.send(raw[40:])
        assert client.answer()[0] == 202


def test_nothing_more_is_read_from_a_client_that_does_not_read_its_answers(served):
    raw = request(Sent(headers=[(b"x-shopify-hmac-sha256", b"x")])) * 20  # 401, with a sentence
    sent, most = 0, 30 << 20
    with served(CALM) as address, Client(address) as client:
        client.socket.settimeout(0.5)
        with suppress(TimeoutError):
            while sent < most:
                client.send(raw)
                sent += len(raw)
        assert sent < most
        assert still_works(address)


def test_a_client_that_never_reads_is_let_go(parser, monkeypatch):
    monkeypatch.setattr("treppe.door.watched.WRITE_TIMEOUT", 0.2)
    pieces, let_go = [], threading.Event()

    async def endless(scope, receive, send):
        await receive()
        gone = asyncio.create_task(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not gone.done():
            pieces.append(1)
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        let_go.set()

    with serving(endless, CALM, parser=parser) as address, Client(address) as client:
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert let_go.wait(10)
    assert 0 < len(pieces) < 1000  # nothing piled up


# Huge


def test_one_header_of_200_kilobytes_is_refused(served, store):
    with served() as address, Client(address) as client:
        client.send(request(signed(b"{}"), (b"x-large", b"x" * 200_000))[:150_000])
        assert client.answer()[0] in (400, 431)
        assert still_works(address)
    assert stored(store) == 1


def test_five_thousand_header_lines_are_refused(served, store):
    with served() as address, Client(address) as client:
        with suppress(OSError):  # it may not even listen to the end
            client.send(request(signed(b"{}"), *[(b"x-%d" % n, b"y") for n in range(5000)]))
        assert client.answer()[0] in (400, 431)
        assert still_works(address)
    assert stored(store) == 1


def test_a_hundred_and_one_short_headers_are_refused(served, store):
    with served() as address, Client(address) as client:
        client.send(request(signed(b"{}"), *[(b"x-%d" % n, b"y") for n in range(101)]))
        assert client.answer()[0] == 431
    assert stored(store) == 0


def test_an_address_without_end_is_refused(served):
    with served() as address, Client(address) as client:
        client.send(b"GET /" + b"x" * (MAX_HEAD_BYTES + 100))
        assert client.answer()[0] in (400, 431)


def test_a_huge_body_that_says_so_is_refused_before_it_is_sent(served, store):
    head, _, _ = request(signed(b"")).partition(b"content-length")
    with served(CALM) as address, Client(address) as client:
        client.send(head + b"content-length: 10000000000\r\n\r\n")
        status, headers, _ = client.answer()
        assert (status, headers[b"connection"]) == (413, b"close")
    assert stored(store) == 0


def test_a_huge_body_that_says_nothing_is_refused_on_the_way(served, store):
    head, _, _ = request(signed(b"")).partition(b"content-length")
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with served(CALM, shop(max_body=200_000)) as address, Client(address) as client:
        client.send(head + b"transfer-encoding: chunked\r\n\r\n")
        with suppress(OSError):
            for _ in range(1000):
                client.send(chunk)
        answer = client.rest()
        assert b" 413 " in answer[:20] or answer == b""  # a reset may overtake the answer
        assert still_works(address)
    assert stored(store) == 1


def test_a_sender_that_writes_everything_first_still_reads_the_413(served):
    with served(CALM, shop(max_body=1024)) as address, Client(address) as client:
        client.send(request(signed(b"x" * 300_000)))
        assert client.answer()[0] == 413


def test_chunks_of_nothing_but_extensions_end_somewhere(served, store, monkeypatch):
    monkeypatch.setattr("treppe.door.server.MOST_RECEIVED", 1 << 20)
    head, _, _ = request(signed(b"")).partition(b"content-length")
    with served(CALM) as address, Client(address) as client:
        client.send(head + b"transfer-encoding: chunked\r\n\r\n")
        sent = 0
        with suppress(OSError):
            while sent < 100 << 20:
                client.send(b"1;" + b"e" * 8000 + b"\r\nx\r\n")
                sent += 8000
        assert sent < 50 << 20
        assert still_works(address)
    assert stored(store) == 1


# Broken


def broken(first, *lines, body=b""):
    return b"\r\n".join((first, b"host: x", *lines)) + b"\r\n\r\n" + body


POST = b"POST /in/open HTTP/1.1"


@pytest.mark.parametrize(
    "raw",
    [
        broken(POST, b"content-length: 2", b"transfer-encoding: chunked", body=b"0\r\n\r\n{}"),
        broken(POST, b"transfer-encoding: chunked", b"content-length: 2", body=b"0\r\n\r\n{}"),
        broken(POST, b"content-length: 2", b"content-length: 3", body=b"{}"),
        broken(POST, b"content-length: 2, 3", body=b"{}"),
        broken(POST, b"content-length: -2", body=b"{}"),
        broken(POST, b"content-length: 0x2", body=b"{}"),
        broken(POST, b"x-a: b\x00c", b"content-length: 2", body=b"{}"),
        broken(POST, b"x\x00a: b", b"content-length: 2", body=b"{}"),
        broken(POST, b"x a: b", b"content-length: 2", body=b"{}"),
        broken(POST, b"no colon", b"content-length: 2", body=b"{}"),
        broken(POST, b"transfer-encoding: chunked", body=b"zz\r\n{}\r\n0\r\n\r\n"),
        broken(POST, b"transfer-encoding: chunked", body=b"-2\r\n{}\r\n0\r\n\r\n"),
        broken(POST, b"transfer-encoding: gzip, chunked, chunked", body=b"0\r\n\r\n"),
        broken(b"POST"),
        broken(b"POST /in/open"),
        broken(b"POST /in/open HTTP/9.9"),
        broken(b"P\xffST /in/open HTTP/1.1"),
        broken(b"POST /in/\xff\xfe HTTP/1.1", b"content-length: 2", body=b"{}"),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
        b"\x00" * 1000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=["cl-te", "te-cl", "two-cl", "cl-list", "cl-minus", "cl-hex", "nul-value", "nul-name", "space-name",
         "no-colon", "chunk-size", "chunk-minus", "te-twice", "short", "no-version", "version", "method", "path",
         "tls", "nuls", "h2"],
)  # fmt: skip
def test_a_broken_request_is_refused_and_stores_nothing(open_door, raw):
    address, store = open_door
    before = stored(store)
    with Client(address) as client:
        client.send(raw)
        answer = client.rest()
    assert b" 2" not in answer[:13]
    assert b" 500 " not in answer
    with Client(address) as client:
        client.send(broken(POST, b"content-length: 4", body=b"good"))
        assert client.answer()[0] == 202
    assert stored(store) == before + 1


def test_bare_line_feeds_harm_nobody(served):
    with served() as address, Client(address) as client:
        client.send(request(signed(b"{}")).replace(b"\r\n", b"\n"))
        assert client.answer()[0] in (202, 400)
        assert still_works(address)


def test_a_trailer_is_no_header(served, store):
    good = dict(signed(b"{}").headers)[b"x-shopify-hmac-sha256"]
    head = broken(b"POST /in/shop HTTP/1.1", b"transfer-encoding: chunked", b"trailer: x-shopify-hmac-sha256")
    trailers = b"x-shopify-hmac-sha256: " + good + b"\r\n" + b"x-more: y\r\n" * 50
    with served() as address, Client(address) as client:
        client.send(head)
        client.send(b"2\r\n{}\r\n0\r\n" + trailers + b"\r\n")
        status, _, body = client.answer()
    assert (status, json.loads(body)["detail"]) == (401, "The header x-shopify-hmac-sha256 is missing")
    assert stored(store) == 0


@pytest.mark.parametrize("leave", [Client.reset, lambda client: client.socket.close()], ids=["reset", "close"])
def test_a_sender_that_vanishes_in_the_middle_of_a_body_stores_nothing(served, store, leave, caplog):
    raw = request(signed(b"x" * 1000))
    with served(CALM) as address:
        for cut in (len(raw) - 1, len(raw) - 999, 40):
            client = Client(address)
            client.send(raw[:cut])
            leave(client)
        assert still_works(address)
    assert stored(store) == 1
    assert "Exception" not in caplog.text


def test_a_sender_that_vanishes_before_the_answer_harms_nobody(served, store, caplog):
    with served() as address:
        for number in range(30):
            client = Client(address)
            client.send(request(signed(b"{}", event_id=b"e%d" % number)))
            client.reset()
        assert still_works(address)
        until(lambda: stored(store) > 0, "something was stored")
    assert "Traceback" not in caplog.text


# Many


needs_other_loopback_addresses = pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.2")


@needs_other_loopback_addresses
def test_a_thousand_idle_connections_of_one_address_stop_nobody_else(served):
    web = Web(port=0, max_connections=500, max_connections_per_ip=50)
    with served(web) as address:
        idle = [Client(address) for _ in range(1000)]
        try:
            with Client(address) as client:
                status, headers, _ = client.answer()
                assert (status, headers[b"retry-after"], headers[b"connection"]) == (429, b"5", b"close")
            with Client(address, source="127.0.0.2") as client:
                client.send(request(signed(b"{}")))
                assert client.answer()[0] == 202
        finally:
            for client in idle:
                client.socket.close()
        until(lambda: still_works(address), "the address has room again")


@needs_other_loopback_addresses
def test_connections_of_all_addresses_have_a_limit_too(served):
    with served(Web(port=0, max_connections=6, max_connections_per_ip=4)) as address:
        idle = [Client(address, source=f"127.0.0.{2 + n % 3}") for n in range(6)]
        for client in idle:
            client.send(b"POST /in/shop HTTP/1.1\r\n")
        try:
            with Client(address) as client:
                status, headers, _ = client.answer()
                assert (status, headers[b"retry-after"]) == (503, b"5")
        finally:
            for client in idle:
                client.socket.close()
        until(lambda: still_works(address), "there is room again")


# Starting and stopping


def test_a_running_request_is_answered_when_the_server_stops(served, store):
    raw = request(signed(b"x" * 100))
    with Client.__new__(Client) as client:
        with served(CALM) as address:
            Client.__init__(client, address)
            client.send(raw[:-1])
            with Client(address) as other:
                other.send(request(signed(b"{}", event_id=b"e2")))
                other.answer()

            def finish():
                until(lambda: not accepts(address), "it accepts nobody any more")
                client.send(raw[-1:])

            last = threading.Thread(target=finish)
            last.start()
        last.join()
        assert client.answer()[0] == 202
    assert stored(store) == 2


def accepts(address):
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


def test_a_port_that_is_taken_is_a_clear_error():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1 port {port}") as error:
            serve(None, Web(port=port))
    assert "Choose another port" in error.value.cure


def test_an_address_of_another_machine_is_a_clear_error():
    with pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1 port 0"):
        listen("192.0.2.1", 0)


def test_a_socket_may_be_handed_in(parser, door_of):
    listener = listen("127.0.0.1", 0)
    with serving(Guard(door_of(), CALM), CALM, sock=listener, parser=parser) as address:
        assert address == listener.getsockname()
        assert still_works(address)


def test_it_listens_on_ipv6_where_there_is_some(parser, door_of):
    try:
        listener = listen("::1", 0)
    except ConfigError:
        pytest.skip("no IPv6 here")
    with serving(Guard(door_of(), CALM), CALM, sock=listener, parser=parser) as address:
        assert still_works(address)
