"""The guard: what never reaches an app."""

import asyncio

import pytest

from tests.door.support import Sent, ask, asked
from treppe.config import Web
from treppe.door.guard import MAX_BODY, MAX_HEAD_BYTES, Guard


class App:
    """Remembers what reached it, and answers 200; may be told to wait."""

    def __init__(self):
        self.bodies = []
        self.go_on = None
        self.others = []

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            self.others.append(scope["type"])
            return
        message = await receive()
        self.bodies.append(message["body"])
        assert not message["more_body"]
        if self.go_on:
            await self.go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def app():
    return App()


def length(value):
    return (b"content-length", value)


CHUNKED = (b"transfer-encoding", b"chunked")


def test_the_app_gets_the_whole_body_at_once(app):
    sent = Sent(headers=[CHUNKED], pieces=(b"ab", b"", b"c"))
    assert ask(Guard(app, Web()), sent).status == 200
    assert app.bodies == [b"abc"]


def test_after_the_body_the_app_hears_the_server_again(app):
    async def listens(scope, receive, send):
        await receive()
        app.bodies.append((await receive())["type"])

    sent = Sent(pieces=(b"x", b"y"), leaves=False)

    async def scenario():
        messages = [{"type": "http.request", "body": b"x"}, {"type": "http.disconnect"}]

        async def receive():
            return messages.pop(0)

        await Guard(listens, Web())(sent.scope(), receive, None)

    asyncio.run(scenario())
    assert app.bodies == ["http.disconnect"]


@pytest.mark.parametrize(
    "headers",
    [
        [length(b"3"), CHUNKED],
        [CHUNKED, length(b"3")],
        [length(b"3"), length(b"3")],
        [length(b"3"), length(b"4")],
        [CHUNKED, CHUNKED],
        [length(b"+3")],
        [length(b"3, 3")],
        [length(b"")],
        [length(b"-1")],
        [length("³".encode())],
        [length(b"0x3")],
    ],
)
def test_a_body_that_may_end_in_two_places_is_400(app, headers):
    guard = Guard(app, Web())
    reply = ask(guard, Sent(headers=headers, pieces=(b"abc",)))
    assert (reply.status, reply.headers[b"connection"]) == (400, b"close")
    assert reply.json["detail"] == "The request does not say plainly where its body ends"
    assert app.bodies == []
    assert guard.refused == {400: 1}


@pytest.mark.parametrize(
    "sent",
    [
        Sent(headers=[(b"x", b"")] * 101),
        Sent(headers=[(b"x", b"y" * MAX_HEAD_BYTES)]),
        Sent(headers=[(b"x" * MAX_HEAD_BYTES, b"")]),
        Sent(headers=[(b"x-%d" % n, b"y" * 200) for n in range(90)]),
        Sent(path="/" + "x" * MAX_HEAD_BYTES),
    ],
    ids=["many", "long value", "long name", "together", "path"],
)
def test_too_much_of_a_head_is_431(app, sent):
    reply = ask(Guard(app, Web()), sent)
    assert (reply.status, reply.headers[b"connection"], app.bodies) == (431, b"close", [])


def test_a_hundred_headers_are_fine(app):
    assert ask(Guard(app, Web()), Sent(headers=[(b"x-%d" % n, b"y" * 100) for n in range(100)])).status == 200


def test_an_announced_body_that_is_too_large_is_not_even_read(app):
    sent = Sent(headers=[length(b"%d" % (MAX_BODY + 1))], pieces=(b"x",), ends=True)
    reply = ask(Guard(app, Web()), sent)
    assert (reply.status, reply.headers[b"connection"], app.bodies) == (413, b"close", [])


def test_a_body_that_grows_too_large_is_413_although_it_said_nothing(app):
    sent = Sent(headers=[CHUNKED], pieces=(b"x" * 600, b"x" * 600))
    assert ask(Guard(app, Web(), lambda path: 1000), sent).status == 413
    assert app.bodies == []


def test_each_path_has_the_limit_its_app_names(app):
    guard = Guard(app, Web(), {"/large": 5000}.get)
    assert ask(guard, Sent(path="/large", pieces=(b"x" * 5000,))).status == 200
    assert ask(guard, Sent(path="/large", pieces=(b"x" * 5001,))).status == 413
    assert ask(guard, Sent(path="/other", pieces=(b"x" * MAX_BODY,))).status == 200
    assert ask(guard, Sent(path="/other", pieces=(b"x" * (MAX_BODY + 1),))).status == 413


@pytest.mark.parametrize("pieces", [(b"",), (b"a", b"b")])
def test_a_body_that_never_ends_is_408(app, pieces):
    reply = ask(Guard(app, Web(body_timeout=0.02)), Sent(headers=[CHUNKED], pieces=pieces, ends=False))
    assert (reply.status, reply.headers[b"connection"]) == (408, b"close")
    assert reply.json["detail"] == "The body was not there within 0.02 s"
    assert app.bodies == []


def test_the_time_for_a_body_counts_in_total_not_from_piece_to_piece(app):
    async def drips():
        async def receive():
            await asyncio.sleep(0.005)
            return {"type": "http.request", "body": b"x", "more_body": True}

        sent = []

        async def send(message):
            sent.append(message)

        await Guard(app, Web(body_timeout=0.05))(Sent(headers=[CHUNKED]).scope(), receive, send)
        return sent[0]["status"]

    assert asyncio.run(asyncio.wait_for(drips(), 10)) == 408
    assert app.bodies == []


def test_a_client_that_leaves_gets_no_answer(app):
    assert ask(Guard(app, Web()), Sent(pieces=(b"x",), leaves=True)) is None
    assert app.bodies == []


def test_one_address_cannot_take_all_the_room(app):
    guard = Guard(app, Web(max_connections_per_ip=2))

    async def scenario():
        app.go_on = asyncio.Event()
        mine = [asyncio.create_task(asked(guard, Sent())) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await asked(guard, Sent())
        other = asyncio.create_task(asked(guard, Sent(client=("192.0.2.2", 1))))
        await asyncio.sleep(0)
        app.go_on.set()
        return refused, await asyncio.gather(*mine, other), await asked(guard, Sent())

    refused, answered, later = asyncio.run(scenario())
    assert (refused.status, refused.headers[b"retry-after"]) == (429, b"5")
    assert [reply.status for reply in answered] == [200] * 3
    assert later.status == 200


def test_all_together_have_a_limit_too(app):
    guard = Guard(app, Web(max_connections=2))

    async def scenario():
        app.go_on = asyncio.Event()
        running = [asyncio.create_task(asked(guard, Sent(client=(f"192.0.2.{n}", 1)))) for n in range(2)]
        await asyncio.sleep(0)
        refused = await asked(guard, Sent(client=("192.0.2.9", 1)))
        app.go_on.set()
        await asyncio.gather(*running)
        return refused, await asked(guard, Sent())

    refused, later = asyncio.run(scenario())
    assert (refused.status, refused.headers[b"retry-after"], later.status) == (503, b"5", 200)


def test_large_bodies_have_a_limit_together(app):
    guard = Guard(app, Web(), lambda path: 1 << 20, max_held=300_000)
    half = Sent(headers=[length(b"200000")], pieces=(b"x" * 200_000,))

    async def scenario():
        app.go_on = asyncio.Event()
        first = asyncio.create_task(asked(guard, half))
        await asyncio.sleep(0)
        refused = await asked(guard, half)
        small = asyncio.create_task(asked(guard, Sent(headers=[length(b"10")], pieces=(b"0123456789",))))
        await asyncio.sleep(0)
        app.go_on.set()
        return (await first).status, refused.status, (await small).status, (await asked(guard, half)).status

    assert asyncio.run(scenario()) == (200, 503, 200, 200)


def test_an_app_that_fails_gives_its_room_back():
    async def fails(scope, receive, send):
        raise ValueError("a bug")

    guard = Guard(fails, Web(max_connections=1))
    for _ in range(3):
        with pytest.raises(ValueError, match="a bug"):
            ask(guard, Sent())


@pytest.mark.parametrize("version", ["0.9", "9.9", ""])
def test_other_versions_of_http_are_505(app, version):
    assert ask(Guard(app, Web()), Sent(version=version)).status == 505


def test_what_is_not_http_is_handed_on(app):
    ask(Guard(app, Web()), Sent(type="lifespan"))
    assert app.others == ["lifespan"]
