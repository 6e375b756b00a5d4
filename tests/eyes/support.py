"""What the tests of the eyes share: a shop's Friday in a store, a served board, and a visitor with cookies."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from typing import Any, NamedTuple

import uvicorn

from treppe.config import Rate, Secret, Settings, User, Web
from treppe.job import Claim, Event, Kind, NewEvent, NewJob, Repeat, Report, Settlement
from treppe.policy.pace import Limits, Pacer
from treppe.store.protocol import Store, Wanted

USERS = (
    User("olga", Secret("plain:opensesame"), "operator"),
    User("vera", Secret("plain:onlylooking"), "viewer"),
)
SETTINGS = Settings(web=Web(users=USERS))
PACER = Pacer({"accounting": Limits(Rate(20, 1.0)), "crm": Limits(), "stock": Limits(concurrent=4)})
WORKER = 7
TASKS = frozenset(f"destination:{name}" for name in ("accounting", "crm", "stock", "mail"))


def until(holds: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Wait until something holds, and return it; fails when it does not within *seconds*."""
    give_up = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < give_up, "it did not come about in time"
        time.sleep(0.005)
    return found


def put(store: Store, id: str, queue: str = "crm", **fields: Any) -> None:
    store.put([NewJob(**{"id": id, "task": f"destination:{queue}", "queue": queue, "payload": b'{"a":1}'} | fields)])


def claims(store: Store, n: int = 1, *queues: str) -> tuple[Claim, ...]:
    store.enlist(WORKER, "worker", 1e9)
    wanted = Wanted(WORKER, n, n, TASKS, queues or None)
    return store.claim(wanted, Pacer({})).claims


def settle(store: Store, event: Event, kind: Kind, *claimed: Claim, **fields: Any) -> None:
    assert store.settle([Settlement(claim, event, kind, **fields) for claim in claimed]) == ()


def dead(store: Store, *ids: str, queue: str = "crm", error: str = "the CRM answered 422: no such customer") -> None:
    for id in ids:
        put(store, id, queue)
    settle(store, Event.BURY, Kind.REFUSED, *claims(store, len(ids), queue), error=error)


def unclear(store: Store, *ids: str, queue: str = "accounting") -> None:
    for id in ids:
        put(store, id, queue, repeat=Repeat.ASK)
    error = "the worker was lost while the call was out; nobody knows whether it acted"
    settle(store, Event.DOUBT, Kind.LAPSED, *claims(store, len(ids), queue), error=error)


def held(store: Store, queue: str = "accounting", seconds: float = 42.0, **fields: Any) -> None:
    """Let the queue be throttled, as a settle and the next grant would."""
    now = store.now()
    report = Report(Kind.THROTTLED, 1, at=now, after=seconds)
    grant = PACER.grant(queue, store.journal.get(f"flow:{queue}"), [report], 0, now, 1, 1.0)
    assert store.journal.swap(f"flow:{queue}", store.journal.get(f"flow:{queue}"), grant.flow)


def friday(store: Store, orders: int = 40) -> None:
    """The promotion Friday, half past: some done, many waiting, one queue held, two orders dead, three unclear."""
    for order in range(orders):
        body = json.dumps({"id": 5104200017 + order, "total_price": "49.90", "customer": {"id": 900 + order % 7}})
        event = NewEvent("shop", f"order-{order:04}", body.encode(), HEADERS, "application/json", "orders/create")
        store.put(
            [
                NewJob(
                    f"shop:order-{order:04}:{name}",
                    f"destination:{name}",
                    name,
                    event=("shop", f"order-{order:04}"),
                    key=f"customer:{900 + order % 7}" if name == "crm" else None,
                    repeat=Repeat.ASK if name == "accounting" else Repeat.SAFE,
                    deadline=900.0,
                )
                for name in ("accounting", "crm", "stock", "mail")
            ],
            [event],
        )
    settle(store, Event.FINISH, Kind.OK, *claims(store, orders, "mail"))
    settle(store, Event.FINISH, Kind.OK, *claims(store, orders * 3 // 4, "stock"))
    settle(store, Event.DEFER, Kind.FAILED, *claims(store, 2, "stock"), error="the answer was 500", delay=40.0)
    settle(store, Event.FINISH, Kind.OK, *claims(store, 5, "crm"))
    settle(store, Event.FINISH, Kind.OK, *claims(store, orders // 2, "accounting"))
    lost = "the worker was lost while the call was out; nobody knows whether it acted"
    settle(store, Event.DOUBT, Kind.LAPSED, *claims(store, 3, "accounting"), error=lost, detail=DETAIL)
    refused = "https://crm.example answered 422: the customer has no address"
    settle(store, Event.BURY, Kind.REFUSED, *claims(store, 1, "crm"), error=refused, detail=DETAIL)
    settle(
        store,
        Event.BURY,
        Kind.CHARGED,
        *claims(store, 1, "stock"),
        error="failed 3 times: the answer was 500",
        charged=True,
    )
    claims(store, 2, "stock")
    held(store, "accounting")


HEADERS = (
    ("Content-Type", "application/json"),
    ("X-Shopify-Topic", "orders/create"),
    ("X-Shopify-Hmac-Sha256", "canary-signature"),
    ("Authorization", "Bearer canary-token"),
)
DETAIL = json.dumps(
    {
        "status": 422,
        "ms": 131,
        "url": "https://crm.example/contacts",
        "headers": {"content-type": "application/json", "set-cookie": "canary-cookie"},
        "answer": '{"error": "the customer has no address", "trace": 90071992547409931}',
    }
).encode()


@contextmanager
def served(app: Any) -> Iterator[int]:
    """The application on a real server on loopback; yields its port."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    cookies: list[str]

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def page(self) -> Page:
        return Page(self.text)


class Page(HTMLParser):
    """A page as a browser takes it apart: elements with their attributes, and the text without the markup."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def all(self, tag: str, **wanted: str) -> list[dict[str, str]]:
        return [found for name, found in self.elements if name == tag and wanted.items() <= found.items()]

    @property
    def rows(self) -> dict[str, str]:
        """The jobs on the page with their tokens."""
        return {found["data-id"]: found["data-token"] for _, found in self.elements if "data-id" in found}

    @property
    def csrf(self) -> str:
        return self.all("input", name="csrf")[-1]["value"]

    @property
    def buttons(self) -> list[str]:
        return [found["value"] for found in self.all("button") if "value" in found]


class Visitor:
    """A browser without JavaScript: it keeps cookies and posts forms, and follows nothing by itself."""

    def __init__(self, port: int, prefix: str = "/board") -> None:
        self.port, self.prefix = port, prefix
        self.cookies: SimpleCookie = SimpleCookie()

    def get(self, path: str = "/", **headers: str) -> Answer:
        return self.request("GET", path, None, headers)

    def post(self, path: str, form: dict[str, Any] | list[tuple[str, Any]] | bytes, **headers: str) -> Answer:
        body = form if isinstance(form, bytes) else urllib.parse.urlencode(form).encode()
        return self.request("POST", path, body, {"content-type": "application/x-www-form-urlencoded"} | headers)

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        cookie = "; ".join(f"{name}={one.value}" for name, one in self.cookies.items() if one.value)
        given = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        try:
            connection.request(method, self.prefix + path, body, given | ({"cookie": cookie} if cookie else {}))
            got = connection.getresponse()
            cookies = got.msg.get_all("set-cookie") or []
            for line in cookies:
                self.cookies.load(line)
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read(), cookies)
        finally:
            connection.close()

    def log_in(self, name: str = "olga", password: str = "opensesame", **form: str) -> Answer:
        page = self.get("/login").page
        return self.post("/login", {"csrf": page.csrf, "name": name, "password": password} | form)

    def act(
        self, event: str, *seen: tuple[str, str], note: str = "", back: str = "unclear", csrf: str | None = None
    ) -> Answer:
        token = self.get("/queues").page.csrf if csrf is None else csrf
        pairs = [pair for id, was in seen for pair in (("id", id), ("token", was))]
        return self.post("/act", [("csrf", token), ("event", event), ("note", note), ("back", back), *pairs])
