import asyncio

import pytest

from tests.door.support import Sent, asked, signed
from tests.door.support import shop as shop_source
from treppe import StoreUnavailable
from treppe.app import open_store
from treppe.app.front import Front, front
from treppe.config import Destination, Secret, Settings, Web
from treppe.door.answers import Answer
from treppe.eyes.measure import Figures
from treppe.policy.pace import Pacer


class Room:
    """Notes who came in."""

    def __init__(self) -> None:
        self.visits: list[tuple[str, str]] = []

    async def __call__(self, scope, receive, send):
        self.visits.append((scope["path"], scope["root_path"]))
        await Answer(200, b"here").send(send)


@pytest.fixture
def store(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/jobs.db", durable=False)
    yield store
    store.close()


def visited(store, path: str, **sent):
    rooms = {name: Room() for name in ("door", "board", "tick")}
    reply = asyncio.run(asked(Front(rooms["door"], rooms["board"], rooms["tick"], store), Sent("GET", path, **sent)))
    return reply, {name: room.visits for name, room in rooms.items() if room.visits}


@pytest.mark.parametrize(
    ("path", "room", "root_path"),
    [
        ("/in/shop", "door", ""),
        ("/in/", "door", ""),
        ("/board", "board", "/board"),
        ("/board/", "board", "/board"),
        ("/board/jobs", "board", "/board"),
        ("/v1/drain", "tick", ""),
    ],
)
def test_each_request_goes_to_its_room(store, path, room, root_path):
    reply, visits = visited(store, path)
    assert (reply.status, visits) == (200, {room: [(path, root_path)]})


def test_the_board_may_lie_below_a_path_of_its_own(store):
    _, visits = visited(store, "/board/jobs", root_path="/tools")
    assert visits == {"board": [("/board/jobs", "/tools/board")]}


@pytest.mark.parametrize("path", ["/boards", "/into/shop", "/v1/drain/", "/v1/jobs", "/favicon.ico", "/healthz/x", ""])
def test_elsewhere_there_is_nothing(store, path):
    reply, visits = visited(store, path)
    assert (reply.status, visits) == (404, {})
    assert reply.json["detail"] == "There is nothing here. Webhooks go to /in/{source}, people to /board/"


def test_the_way_in_leads_to_the_board(store):
    reply, _ = visited(store, "/")
    assert (reply.status, reply.headers[b"location"]) == (307, b"board/")


def test_alive_and_ready(store):
    for path in ("/healthz", "/readyz"):
        reply, _ = visited(store, path)
        assert (reply.status, reply.json) == (200, {"status": "ok"})


def test_not_ready_when_the_store_does_not_answer_but_alive(store, monkeypatch):
    def away(name):
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(store.journal, "get", away)
    assert visited(store, "/healthz")[0].status == 200
    reply, _ = visited(store, "/readyz")
    assert (reply.status, reply.json["detail"]) == (503, "The store does not answer: the disk is gone")


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
def test_what_is_no_request_is_left_alone(store, kind):
    assert visited(store, "/in/shop", type=kind) == (None, {})


def test_all_rooms_stand_behind_one_guard(store):
    settings = Settings(
        sources={"shop": shop_source()},
        destinations={"crm": Destination("crm", "https://crm.example/in")},
        web=Web(drain_secrets=(Secret("plain:s3cret"),)),
    )
    asgi, _, close = front(settings, store, Figures(store, Pacer({})), lambda budget: {"done": budget})

    async def story():
        return [
            await asked(asgi, sent)
            for sent in (
                signed(b"{}"),
                Sent("POST", "/v1/drain", [(b"authorization", b"Bearer s3cret")]),
                Sent("GET", "/board/login"),
                Sent("GET", "/healthz"),
                Sent("POST", "/healthz", pieces=(b"x" * (2 << 20),)),
            )
        ]

    hook, drain, board, alive, large = asyncio.run(story())
    close()
    assert (hook.status, store.backlog().accepted) == (202, 1)
    assert drain.json == {"done": 25.0}
    assert board.status in (200, 303)
    assert (alive.status, large.status) == (200, 413)
