"""One exchange over real sockets, with everything a network and a target can do to it."""

import asyncio
import contextlib
import socket
import ssl
import threading
import tracemalloc
import zlib

import pytest

from tests.delivery.support import (
    TARGET,
    claim,
    deliver,
    deliver_each,
    destination,
    detail,
    resolver,
    server_tls,
    trusting,
    with_delivery,
)
from treppe.delivery import wire
from treppe.delivery.http import Delivery
from treppe.job import Kind, Repeat
from treppe.testing.destination import (
    FakeDestination,
    Step,
    answer,
    bomb,
    cut,
    drip,
    drop,
    endless,
    hang,
    moved,
    raw,
    stall,
)

LOOPBACKS = ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "localhost", "[::ffff:127.0.0.1]"]
BODIES = [
    b"",
    b"{}",
    b'{"a":1,"a":2,"b":"\\u0000\\ud800"}',
    bytes(range(256)),
    b"\xff\xfe\x00",
    b"a=1&b=%20",
    b"\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    b"x" * 65536,
    b"y" * (3 * 1024 * 1024 + 1),
]


def closed_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: f"{len(body)} bytes")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_the_bytes_arrive_as_they_came(body, method):
    with FakeDestination() as target:
        assert deliver(destination(target, method=method), body).kind is Kind.OK
    (call,) = target.calls
    assert (call.method, call.path, call.body) == (method, "/orders", body)
    assert call.header("content-length") == str(len(body))
    assert call.header("transfer-encoding") is None


def test_headers_keep_their_spelling_on_the_wire():
    with FakeDestination() as target:
        deliver(destination(target, headers=(("X-sHOP-Id", "1"), ("X-sHOP-Id", "2"))))
    sent = [pair for pair in target.calls[0].headers if pair[0].lower() == "x-shop-id"]
    assert sent == [("X-sHOP-Id", "1"), ("X-sHOP-Id", "2")]


def test_the_url_goes_out_as_it_is_written():
    with FakeDestination() as target:
        deliver(destination(target.url + "a%2Fb;c?sig=%2Bx%2f&y=a+b&z"))
    assert target.calls[0].path == "/a%2Fb;c?sig=%2Bx%2f&y=a+b&z"


def test_nothing_of_the_environment_is_used(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    with FakeDestination() as target:
        assert deliver(destination(target)).kind is Kind.OK
    assert target.calls[0].header("authorization") is None


def test_a_cookie_of_one_answer_is_not_sent_with_the_next_call():
    with FakeDestination(answer(200, headers={"Set-Cookie": "session=s3cret"})) as target:
        deliver_each(destination(target), 2)
    assert target.calls[1].header("cookie") is None


# What did not leave


def test_a_refused_connection_did_not_act():
    outcome = deliver(destination(f"http://127.0.0.1:{closed_port()}/"))
    assert (outcome.kind, outcome.acted) == (Kind.DOWN, False)
    assert "no connection to 127.0.0.1" in outcome.error
    assert detail(outcome)["sent"] is False


def test_a_name_without_an_address_did_not_act():
    outcome = deliver(destination("http://no-such-name.invalid/"))
    assert (outcome.kind, outcome.acted) == (Kind.DOWN, False)
    assert outcome.error.startswith("the name no-such-name.invalid has no address")


def test_a_connection_that_does_not_come_about_in_time_did_not_act():
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        url = f"http://127.0.0.1:{full.getsockname()[1]}/"
        callers = [socket.socket() for _ in range(8)]  # fill the queue of those who wait to be let in
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(full.getsockname())
        try:
            outcome = deliver(destination(url, timeout=0.2))
        finally:
            for caller in callers:
                caller.close()
    assert (outcome.kind, outcome.acted) == (Kind.DOWN, False)
    assert outcome.error.startswith("no connection to 127.0.0.1:")
    assert outcome.error.endswith("within 0.2 s")


def test_a_name_that_takes_too_long_did_not_act():
    async def look_up(host, port):
        await asyncio.Event().wait()

    outcome = deliver(destination("http://crm.example/", timeout=0.2), parts={"look_up": look_up})
    assert (outcome.kind, outcome.acted) == (Kind.DOWN, False)
    assert outcome.error == "no connection to crm.example within 0.2 s"


def test_a_certificate_we_do_not_trust_did_not_act():
    with FakeDestination(tls=server_tls()) as target:
        outcome = deliver(destination(target, allow_http=False))
    assert (outcome.kind, outcome.acted, target.calls) == (Kind.DOWN, False, ())
    assert outcome.error.startswith("the certificate of 127.0.0.1:")
    assert "self-signed" in outcome.error or "self signed" in outcome.error


def test_a_certificate_of_another_name_did_not_act():
    look_up, _ = resolver(["127.0.0.1"])
    with FakeDestination(tls=server_tls()) as target:
        to = destination(f"https://other.example:{target.port}/")
        outcome = deliver(to, parts={"look_up": look_up, "tls": trusting()})
    assert (outcome.kind, outcome.acted, target.calls) == (Kind.DOWN, False, ())
    assert "other.example" in outcome.error


def test_a_target_that_speaks_no_tls_did_not_act():
    with FakeDestination(answer(400)) as target:
        outcome = deliver(destination(f"https://127.0.0.1:{target.port}/", timeout=0.5))
    assert (outcome.kind, outcome.acted, target.calls) == (Kind.DOWN, False, ())
    with socket.create_server(("127.0.0.1", 0)) as plain:
        server = threading.Thread(target=refuse_tls, args=[plain])
        server.start()
        outcome = deliver(destination(f"https://127.0.0.1:{plain.getsockname()[1]}/"))
        server.join()
    assert (outcome.kind, outcome.acted) == (Kind.DOWN, False)
    assert outcome.error.startswith("no encrypted connection to 127.0.0.1:")


def refuse_tls(plain: socket.socket) -> None:
    caller, _ = plain.accept()
    with caller:
        caller.recv(65536)
        caller.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def test_a_tls_handshake_that_hangs_did_not_act():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome = deliver(destination(f"https://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.2))
    assert (outcome.kind, outcome.acted) == (Kind.DOWN, False)


def test_tls_is_checked_against_the_name_while_the_checked_address_is_called():
    look_up, asked = resolver(["127.0.0.1"])
    with FakeDestination(tls=server_tls()) as target:
        to = destination(f"https://target.example:{target.port}/in", allow_http=False)
        outcome = deliver(to, parts={"look_up": look_up, "tls": trusting()})
    assert (outcome.kind, asked) == (Kind.OK, ["target.example"])
    assert target.calls[0].header("host") == f"target.example:{target.port}"


def test_old_versions_of_tls_are_not_spoken():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TARGET)
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with FakeDestination(tls=context) as target:
        assert deliver(destination(target), parts={"tls": trusting()}).kind is Kind.DOWN


# What left, and nobody answered


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize("step", [drop(), cut()], ids=["acted, then reset", "reset before the body was read"])
@pytest.mark.parametrize("repeat", [Repeat.SAFE, Repeat.ASK])
def test_a_connection_that_breaks_after_bytes_left_may_have_acted_and_is_not_tried_again(method, step, repeat):
    with FakeDestination(step) as target:
        outcome = deliver(destination(target, method=method), repeat=repeat)
    assert (outcome.kind, outcome.acted) == (Kind.FAILED, None)
    assert outcome.error.endswith("broke before an answer came; nobody knows whether it acted")
    assert detail(outcome)["sent"] is True
    assert len(target.calls) == 1


def test_a_target_that_hangs_may_have_acted():
    with FakeDestination(hang()) as target:
        outcome = deliver(destination(target, timeout=0.5))
    assert (outcome.kind, outcome.acted) == (Kind.FAILED, None)
    assert outcome.error == f"no answer from 127.0.0.1:{target.port} within 0.5 s; nobody knows whether it acted"
    assert [call.step for call in target.calls] == ["hang"]


def test_a_target_that_stops_reading_half_way_may_have_acted():
    with FakeDestination(stall()) as target:
        outcome = deliver(destination(target, timeout=0.5), b"x" * 30_000_000)
    assert (outcome.kind, outcome.acted) == (Kind.FAILED, None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbroken header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x00\x00" * 10,
    ],
    ids=["nothing", "ssh", "no status", "no colon", "huge header", "cut head", "no chunks", "tls"],
)
def test_an_answer_that_is_not_http_may_have_acted(data):
    with FakeDestination(raw(data)) as target:
        outcome = deliver(destination(target))
    assert (outcome.kind, outcome.acted, len(target.calls)) == (Kind.FAILED, None, 1)


def test_a_dripping_head_ends_with_the_limit():
    async def play(visit):
        while not visit.released.is_set():
            await visit.send(b"HTTP/1.1 200 OK\r\n"[:1])
            await asyncio.sleep(0.01)

    with FakeDestination(Step("drip head", play)) as target:
        outcome = deliver(destination(target, timeout=0.5))
    assert (outcome.kind, outcome.acted) == (Kind.FAILED, None)


def test_a_kept_connection_that_has_gone_stale_counts_as_maybe_sent():
    with FakeDestination(answer(200), drop()) as target:
        first, second = deliver_each(destination(target), 2)
    assert (first.kind, second.kind, second.acted) == (Kind.OK, Kind.FAILED, None)
    assert [call.connection for call in target.calls] == [1, 1]


# Connections


def test_connections_are_kept_for_what_may_be_repeated():
    with FakeDestination() as target:
        deliver_each(destination(target), 3)
    assert {call.connection for call in target.calls} == {1}


def test_what_must_not_be_repeated_gets_a_connection_of_its_own():
    with FakeDestination() as target:
        deliver_each(destination(target), 3, repeat=Repeat.ASK)
    assert [call.connection for call in target.calls] == [1, 2, 3]
    assert {call.header("connection") for call in target.calls} == {"close"}


def test_a_kept_connection_that_idled_too_long_is_not_used_again(monkeypatch):
    monkeypatch.setattr(wire, "KEPT", 0.0)
    with FakeDestination() as target:
        deliver_each(destination(target), 2)
    assert [call.connection for call in target.calls] == [1, 2]


def test_each_event_loop_has_connections_of_its_own():
    async def once(delivery, to):
        try:
            return await delivery.run(claim(to))
        finally:
            await delivery.aclose()

    with FakeDestination() as target:
        to = destination(target)
        delivery = Delivery({"crm": to})
        assert [asyncio.run(once(delivery, to)).kind for _ in range(2)] == [Kind.OK, Kind.OK]


def test_many_deliveries_run_at_once():
    async def work(delivery):
        return await asyncio.gather(*(delivery.run(claim(to, payload=b"%d" % n)) for n in range(150)))

    with FakeDestination(*[hang()] * 150) as target:
        to = destination(target)

        async def all_at_once(delivery):
            running = asyncio.create_task(work(delivery))
            await asyncio.to_thread(target.wait_for, 150)
            target.release()
            return await running

        outcomes = with_delivery(to, all_at_once)
    assert {outcome.kind for outcome in outcomes} == {Kind.FAILED}
    assert {call.body for call in target.calls} == {b"%d" % n for n in range(150)}


# Bodies of answers


@pytest.mark.parametrize(("status", "kind"), [(200, Kind.OK), (422, Kind.REFUSED), (500, Kind.FAILED)])
@pytest.mark.parametrize("step", [drip, endless, bomb])
def test_the_status_stands_however_the_body_behaves(step, status, kind):
    with FakeDestination(step(status)) as target:
        outcome = deliver(destination(target, timeout=1.0))
    assert outcome.kind is kind
    assert len(target.calls) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 100\r\n\r\nshort",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
        b"Content-Encoding: br\r\nContent-Length: 5\r\n\r\nhello",
        b"Content-Type: text/plain; charset=zlib_codec\r\nContent-Length: 5\r\n\r\nhello",
        b"Content-Type: ;;;=\r\nContent-Length: 5\r\n\r\nhello",
        b"Content-Type: text/\xff; charset=\xfe\r\nContent-Length: 2\r\n\r\n\xff\x00",
    ],
)
def test_a_broken_body_after_2xx_is_still_delivered(body):
    with FakeDestination(raw(b"HTTP/1.1 200 OK\r\n" + body)) as target:
        outcome = deliver(destination(target))
    assert (outcome.kind, outcome.acted) == (Kind.OK, True)
    assert detail(outcome)["status"] == 200


def test_one_long_header_does_not_make_an_answer_unreadable():
    with FakeDestination(answer(200, headers={"Content-Security-Policy": "x" * 30_000})) as target:
        assert deliver(destination(target)).kind is Kind.OK


def test_a_body_of_200_megabytes_of_gzip_stays_small_in_memory():
    with FakeDestination(bomb()) as target:
        to = destination(target)
        tracemalloc.start()
        try:
            outcome = deliver(to)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert outcome.kind is Kind.OK
    assert peak < 16 * 1024 * 1024


def test_no_more_than_the_head_of_an_endless_body_is_read():
    sent = 0

    async def play(visit):
        nonlocal sent
        await visit.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while sent < 1 << 30:
            await visit.send(b"." * 65536)
            sent += 65536

    with FakeDestination(Step("flood", play)) as target:
        assert deliver(destination(target)).kind is Kind.OK
    assert sent < 32 * 1024 * 1024  # what fits into the buffers of both sides


@pytest.mark.parametrize(
    ("headers", "body", "shown"),
    [
        ({}, b"made", "made"),
        ({}, "größer".encode(), "größer"),
        ({"Content-Type": "text/plain; charset=ISO-8859-1"}, "größer".encode("latin-1"), "größer"),
        ({"Content-Type": "text/plain; charset=punycode"}, b"made-", "made-"),
        ({}, b"a\x00b\xff", "a\ufffdb\ufffd"),
        ({"Content-Encoding": "gzip"}, zlib.compress(b"made", wbits=31), "made"),
        ({"Content-Encoding": "deflate"}, zlib.compress(b"made"), "made"),
    ],
)
def test_people_can_read_the_head_of_the_answer(headers, body, shown):
    with FakeDestination(answer(200, body, headers)) as target:
        assert detail(deliver(destination(target)))["answer"] == shown


def test_a_body_read_to_its_end_gives_the_connection_back_and_a_cut_one_closes_it():
    with FakeDestination(answer(200, b"x" * 1000), answer(200, b"x" * 1_000_000), answer(200)) as target:
        deliver_each(destination(target), 3)
    assert [call.connection for call in target.calls] == [1, 1, 2]


# Where we may send


@pytest.mark.parametrize("host", LOOPBACKS)
def test_loopback_in_any_spelling_is_not_called_unless_it_is_allowed(host):
    with FakeDestination() as target:
        outcome = deliver(destination(f"http://{host}:{target.port}/", allow_networks=()))
    assert (outcome.kind, outcome.acted, target.calls) == (Kind.DOWN, False, ())


def test_a_refused_address_is_told_with_its_cure_and_holds_the_queue_instead_of_burying_jobs():
    look_up, _ = resolver(["10.0.0.5"])
    outcome = deliver(destination("https://crm.example/", allow_networks=()), parts={"look_up": look_up})
    assert (outcome.kind, outcome.acted) == (Kind.DOWN, False)
    assert outcome.error.startswith("the address 10.0.0.5 is not public and not allowed")
    assert 'add allow_networks = ["10.0.0.5"]' in outcome.error


def test_one_bad_address_among_good_ones_refuses_the_name():
    look_up, _ = resolver(["127.0.0.1", "10.0.0.5"])
    with FakeDestination() as target:
        outcome = deliver(destination(f"http://crm.example:{target.port}/"), parts={"look_up": look_up})
    assert (outcome.kind, target.calls) == (Kind.DOWN, ())
    assert "10.0.0.5" in outcome.error


def test_a_name_that_changes_its_answer_is_checked_again_before_it_is_called(monkeypatch):
    monkeypatch.setattr(wire, "NAMES_KEPT", 0)
    look_up, asked = resolver(["127.0.0.1"], ["127.0.0.2"])
    with FakeDestination() as target:
        to = destination(f"http://crm.example:{target.port}/", allow_networks=("127.0.0.1/32",))

        async def twice(delivery):
            return [await delivery.run(claim(to, repeat=Repeat.ASK)) for _ in range(2)]

        first, second = with_delivery(to, twice, look_up=look_up)
    assert (first.kind, second.kind) == (Kind.OK, Kind.DOWN)
    assert "127.0.0.2" in second.error
    assert (len(target.calls), len(asked)) == (1, 2)


def test_the_name_is_asked_once_per_connection_and_exactly_that_answer_is_called():
    look_up, asked = resolver(["127.0.0.1"], ["127.0.0.2"])
    with FakeDestination() as target:
        to = destination(f"http://crm.example:{target.port}/", allow_networks=("127.0.0.1/32",))
        assert deliver(to, parts={"look_up": look_up}).kind is Kind.OK
    assert asked == ["crm.example"]


def test_a_connection_of_a_destination_that_may_go_there_is_not_lent_to_one_that_may_not():
    async def both(allowed, other):
        delivery = Delivery({"crm": allowed, "other": other})
        try:
            return [await delivery.run(claim(to)) for to in (allowed, other)]
        finally:
            await delivery.aclose()

    with FakeDestination() as target:
        allowed = destination(target)
        other = type(allowed)("other", target.url, allow_http=True, timeout=5.0)
        first, second = asyncio.run(both(allowed, other))
    assert (first.kind, second.kind, len(target.calls)) == (Kind.OK, Kind.DOWN, 1)


def test_a_redirect_is_not_followed():
    with FakeDestination() as inside, FakeDestination(moved(inside.url + "?t=s3cret")) as target:
        outcome = deliver(destination(target))
    assert (outcome.kind, inside.calls, len(target.calls)) == (Kind.MOVED, (), 1)
    assert outcome.error == f"target moved to {inside.url}?t=… (302 Found)"


# Cancelling


def test_a_cancel_goes_through_while_nothing_is_known():
    async def work(delivery):
        running = asyncio.create_task(delivery.run(claim(to)))
        await asyncio.to_thread(target.wait_for, 1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return running.cancelled()

    with FakeDestination(hang()) as target:
        to = destination(target)
        assert with_delivery(to, work)


def test_a_cancel_while_the_body_is_read_does_not_lose_what_is_known(monkeypatch):
    async def work(delivery):
        reading = asyncio.Event()
        monkeypatch.setattr(wire, "_unpacker", lambda _: lambda piece, most: reading.set() or piece[:most])
        running = asyncio.create_task(delivery.run(claim(to)))
        await reading.wait()
        running.cancel()
        return await running

    with FakeDestination(Step("half", half_an_answer)) as target:
        to = destination(target, timeout=60.0)
        outcome = with_delivery(to, work)
    assert (outcome.kind, outcome.acted) == (Kind.OK, True)
    assert detail(outcome)["answer"] == "made"


async def half_an_answer(visit):
    await visit.send(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nmade")
    await visit.released.wait()


# Bodies of requests that meet somebody who does not read


def test_after_the_limit_not_one_more_byte_goes_out():
    body = b"x" * 30_000_000

    async def work(delivery):
        outcome = await delivery.run(claim(to, body))
        return outcome, await asyncio.to_thread(read_to_the_end, server)

    with socket.create_server(("127.0.0.1", 0)) as server:
        to = destination(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout=0.5)
        outcome, came = with_delivery(to, work)
    assert (outcome.kind, outcome.acted) == (Kind.FAILED, None)
    assert came < len(body)


def read_to_the_end(server: socket.socket) -> int:
    caller, _ = server.accept()
    caller.settimeout(5)
    came = 0
    with caller, contextlib.suppress(ConnectionResetError):
        while piece := caller.recv(1 << 20):
            came += len(piece)
    return came


def test_an_answer_that_comes_before_the_body_was_taken_counts():
    async def play(visit):
        await visit.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        await visit.released.wait()

    with FakeDestination(Step("early", play, reads=False)) as target:
        outcome = deliver(destination(target), b"x" * 30_000_000)
    assert (outcome.kind, detail(outcome)["status"]) == (Kind.REFUSED, 413)
