import asyncio
from collections.abc import Awaitable, Callable

import pytest

from treppe.demo.wire import HOST, Answer, Client, Request, Server


async def echo(request: Request) -> Answer | None:
    if request.path == "/silent":
        return None
    if request.path == "/slow":
        await request.gone()
        return None
    return Answer(201, request.body, {"x-seen": f"{request.method} {request.headers.get('x-mine', '')}"})


def against(handler: Callable[[Request], Awaitable[Answer | None]], story: Callable[[Server, Client], Awaitable[None]]):
    async def play() -> None:
        server = Server(handler)
        client = Client(await server.listen())
        try:
            async with asyncio.timeout(10):
                await story(server, client)
        finally:
            await client.close()
            await server.close()

    asyncio.run(play())


def test_a_call_comes_through_and_is_answered():
    async def story(server: Server, client: Client) -> None:
        answer = await client.call("POST", "/", {"X-Mine": "yes"}, b"\x00bytes")
        assert (answer.status, answer.body, answer.headers["x-seen"]) == (201, b"\x00bytes", "POST yes")

    against(echo, story)


def test_a_connection_is_kept_for_the_next_call():
    async def story(server: Server, client: Client) -> None:
        for _ in range(3):
            await client.call("POST", "/", body=b"a")
        assert len(server._open) == 1

    against(echo, story)


def test_silence_reaches_the_caller_as_a_lost_connection():
    async def story(server: Server, client: Client) -> None:
        with pytest.raises(ConnectionError):
            await client.call("POST", "/silent")

    against(echo, story)


def test_a_caller_without_patience_hangs_up():
    async def story(server: Server, client: Client) -> None:
        with pytest.raises(TimeoutError):
            await client.call("POST", "/slow", patience=0.05)
        await asyncio.gather(*filter(None, server._open))

    against(echo, story)


def test_after_refusing_it_listens_again_on_the_same_port():
    async def story(server: Server, client: Client) -> None:
        await client.call("GET", "/")
        server.refuse()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, client.port)
        await server.listen()
        assert (await client.call("GET", "/")).status == 201

    against(echo, story)


def test_a_body_in_chunks_is_read():
    async def story(server: Server, client: Client) -> None:
        reader, writer = await asyncio.open_connection(HOST, client.port)
        writer.write(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"201 Created" in head
        assert await reader.readexactly(5) == b"abcde"
        writer.close()

    against(echo, story)


@pytest.mark.parametrize(
    "garbage",
    [
        b"nonsense\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffff\r\n",
    ],
)
def test_what_is_no_request_is_hung_up_on(garbage: bytes):
    async def story(server: Server, client: Client) -> None:
        reader, writer = await asyncio.open_connection(HOST, client.port)
        writer.write(garbage)
        assert await reader.read() == b""
        writer.close()

    against(echo, story)


def test_cookies_that_come_one_per_header_are_all_kept():
    async def two(request: Request) -> Answer:
        return Answer(200, b"", {"set-cookie": "a=1", "Set-Cookie": "b=2"})

    async def story(server: Server, client: Client) -> None:
        assert (await client.call("GET", "/")).headers["set-cookie"] == "a=1\nb=2"

    against(two, story)
