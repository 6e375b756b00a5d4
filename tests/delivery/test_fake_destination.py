"""The scripted target of the test kit, seen by a plain client."""

import http.client
import socket
import threading

import pytest

from treppe.testing.destination import (
    FakeDestination,
    answer,
    bomb,
    drip,
    drop,
    endless,
    hang,
    moved,
    raw,
    stall,
    throttled,
)


def call(target, method="POST", path="/", body=b"x", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=5)
    try:
        connection.request(method, path, body, headers)
        got = connection.getresponse()
        return got.status, dict(got.getheaders()), got.read()
    finally:
        connection.close()


def test_the_script_is_played_in_order_and_then_the_rest_is_otherwise():
    with FakeDestination(answer(201, b"a"), throttled(9), moved("/b"), otherwise=answer(418)) as target:
        answers = [call(target) for _ in range(5)]
    assert [status for status, _, _ in answers] == [201, 429, 302, 418, 418]
    assert (answers[1][1]["Retry-After"], answers[2][1]["Location"]) == ("9", "/b")


def test_the_ledger_keeps_what_came():
    with FakeDestination() as target:
        call(target, "PUT", "/a?b=c", b"\x00\xff", **{"X-Shop": "mine"})
    (came,) = target.calls
    assert (came.method, came.path, came.body) == ("PUT", "/a?b=c", b"\x00\xff")
    assert (came.connection, came.step) == (1, "answer 200")
    assert (came.header("x-shop"), came.header("x-none")) == ("mine", None)


def test_the_ledger_keeps_calls_that_got_no_answer():
    with FakeDestination(drop(), raw(b"")) as target:
        with pytest.raises(ConnectionResetError):
            call(target)
        with pytest.raises(http.client.RemoteDisconnected):
            call(target)
    assert [came.step for came in target.calls] == ["drop", "raw"]


def test_a_chunked_body_is_put_together():
    with FakeDestination() as target:
        call(target, body=iter([b"one", b"two"]))
    assert target.calls[0].body == b"onetwo"


def test_a_hanging_call_ends_when_it_is_released():
    ended = []

    def wait_for_an_answer():
        with pytest.raises(ConnectionResetError):
            call(target)
        ended.append("reset")

    with FakeDestination(hang()) as target:
        caller = threading.Thread(target=wait_for_an_answer)
        caller.start()
        target.wait_for(1)
        assert ended == []
        target.release()
        caller.join(5)
    assert ended == ["reset"]


@pytest.mark.parametrize("step", [hang(), stall(), drip(), endless()], ids=lambda step: step.name)
def test_everything_that_goes_on_for_ever_ends_when_it_is_released(step):
    with FakeDestination(step) as target, socket.create_connection(("127.0.0.1", target.port), timeout=5) as caller:
        caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
        target.wait_for(1)
        target.release()
        with pytest.raises(ConnectionResetError):
            read_for_ever(caller)


def read_for_ever(caller: socket.socket) -> None:
    while caller.recv(65536):
        pass


def test_a_hanging_call_does_not_keep_the_target_from_closing():
    with FakeDestination(hang(), drip()) as target, socket.create_connection(("127.0.0.1", target.port)) as caller:
        caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
        target.wait_for(1)


def test_the_port_is_closed_while_it_refuses_and_the_same_afterwards():
    with FakeDestination() as target:
        for _ in range(3):
            with target.refusing(), pytest.raises(ConnectionRefusedError):
                call(target)
            assert call(target)[0] == 200
    assert len(target.calls) == 3


def test_the_script_can_grow():
    with FakeDestination() as target:
        target.then(answer(503), answer(202))
        assert [call(target)[0] for _ in range(3)] == [503, 202, 200]


def test_waiting_for_calls_that_do_not_come_fails_with_the_figures():
    with FakeDestination() as target:
        call(target)
        with pytest.raises(AssertionError, match="1 of 2 calls came within 0 s"):
            target.wait_for(2, within=0.0)


def test_the_bomb_is_small_on_the_wire():
    with FakeDestination(bomb(mebibytes=20)) as target:
        _, headers, body = call(target)
    assert headers["Content-Encoding"] == "gzip"
    assert len(body) < 100_000


BROKEN = [
    b"nonsense\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab",
]


@pytest.mark.parametrize("request_", BROKEN)
def test_a_broken_request_ends_its_connection_and_nothing_else(request_):
    with FakeDestination() as target:
        with socket.create_connection(("127.0.0.1", target.port), timeout=5) as caller:
            caller.sendall(request_)
            caller.shutdown(socket.SHUT_WR)
            assert caller.recv(100) == b""
        assert call(target)[0] == 200
