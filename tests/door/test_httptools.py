"""Which requests go the short way: seen from inside, where sockets would show it only after megabytes."""

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from treppe.config import Web
from treppe.door.answers import Answer
from treppe.door.httptools import Short
from treppe.door.protocol import protocol
from treppe.door.watched import Keeper

PLAIN = b"POST /in/shop HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


class Transport(asyncio.Transport):
    """Takes everything and sends nothing."""

    def write(self, data):
        self.extra = data

    def is_closing(self):
        return False

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass

    def close(self):
        pass


async def goes_short(raw, paused=False):
    async def app(scope, receive, send):
        pass

    short = {b"/in/shop": lambda headers, body, reply: None}
    config = uvicorn.Config(app, log_config=None)
    config.load()
    kind = protocol(Keeper(Web(port=0), 1 << 20), "httptools", short)
    made = kind(config=config, server_state=ServerState(), app_state={}, _loop=asyncio.get_running_loop())
    made.connection_made(Transport())
    if paused:
        made.pause_writing()
    made.data_received(raw)
    went = isinstance(made.cycle, Short)
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)
    made.connection_lost(None)
    made._stop_being_stuck()
    return went


@pytest.mark.parametrize(
    ("raw", "short"),
    [
        (PLAIN, True),
        (PLAIN.replace(b"/in/shop", b"/in/shop?a=1"), False),
        (PLAIN.replace(b"/in/shop", b"/in/other"), False),
        (PLAIN.replace(b"POST", b"PUT"), False),
        (PLAIN.replace(b"1.1", b"1.0"), False),
        (PLAIN.replace(b"host: x", b"host: x\r\nConnection: close"), False),
        (PLAIN.replace(b"host: x", b"host: x\r\nExpect: 100-continue"), False),
        (PLAIN.replace(b"host: x", b"x-a: 1\r\nX-A: 2"), False),
        (PLAIN.replace(b"content-length: 2\r\n\r\n{}", b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"), False),
        (PLAIN.replace(b"host: x", b"host: x\r\nx-long: " + b"y" * 20_000), False),
        (PLAIN.replace(b": 2\r\n\r\n{}", b": 70000\r\n\r\n" + b"z" * 70_000), False),
        (PLAIN[:-1], False),
    ],
    ids=["plain", "query", "elsewhere", "put", "http-1.0", "close", "expect", "repeated", "chunked", "long-head",
         "large-body", "not-whole"],
)  # fmt: skip
def test_only_a_plain_request_that_came_in_one_piece_goes_short(raw, short):
    assert asyncio.run(goes_short(raw)) is short


def test_a_client_that_does_not_read_its_answers_goes_the_long_way_where_one_waits_for_it():
    assert asyncio.run(goes_short(PLAIN, paused=True)) is False


def test_an_answer_is_given_once():
    class Protocol:
        sent = 0

        def send_answer(self, answer):
            self.sent += 1

    one = Short(Protocol())
    one.reply(Answer(202))
    one.reply(Answer(503))
    assert one._protocol.sent == 1
