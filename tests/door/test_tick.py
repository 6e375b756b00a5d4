import asyncio
import logging
import threading
from dataclasses import dataclass

import pytest

from tests.door.support import Sent, asked
from treppe import StoreUnavailable
from treppe.config import Secret
from treppe.door.tick import AT_ONCE, Tick

DONE = {"done": 3, "failed": 1, "waiting": 0, "oldest_age_s": None, "next_due_in_s": None, "stopped": "empty"}
SECRETS = (Secret("plain:first-s3cret"), Secret("plain:second-s3cret"))
RIGHT = ((b"authorization", b"Bearer first-s3cret"),)


@dataclass
class Call(Sent):
    """A call of cron's."""

    path: str = "/v1/drain"
    headers: list = RIGHT
    query: bytes = b""

    def scope(self):
        return super().scope() | {"query_string": self.query}


def call(tick: Tick, **call):
    return asyncio.run(asked(tick, Call(**call)))


@pytest.fixture
def budgets() -> list[float]:
    return []


@pytest.fixture
def tick(budgets) -> Tick:
    def drain(budget):
        budgets.append(budget)
        return DONE

    return Tick(drain, SECRETS)


@pytest.mark.parametrize("token", [b"Bearer first-s3cret", b"bearer second-s3cret", b"BEARER  first-s3cret "])
def test_any_of_the_secrets_opens_it(tick, budgets, token):
    reply = call(tick, headers=[(b"authorization", token)])
    assert (reply.status, reply.json, reply.headers[b"content-type"]) == (200, DONE, b"application/json")
    assert budgets == [25.0]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer ")],
        [(b"authorization", b"Bearer third-s3cret")],
        [(b"authorization", b"Bearer first-s3cre")],
        [(b"authorization", b"Bearer \xff\xfe\xfc")],
        [(b"authorization", b"Basic first-s3cret")],
        [(b"authorization", b"first-s3cret")],
        [*RIGHT, *RIGHT],
        [(b"x-authorization", b"Bearer first-s3cret")],
    ],
)
def test_nothing_else_does(tick, budgets, headers):
    reply = call(tick, headers=headers)
    assert (reply.status, reply.headers[b"www-authenticate"]) == (401, b"Bearer")
    assert reply.json["detail"] == "A bearer token is needed: web.drain_secret in treppe.toml"
    assert budgets == []


def test_without_secrets_nobody_gets_in(budgets):
    assert call(Tick(budgets.append, ())).status == 401


def test_a_secret_that_cannot_be_read_opens_nothing_and_the_others_still_do(caplog):
    tick = Tick(lambda budget: DONE, (Secret("env:NOT_SET_ANYWHERE"), *SECRETS))
    assert call(tick).status == 200
    assert call(tick, headers=[(b"authorization", b"Bearer ")]).status == 401
    assert "a drain secret cannot be read: env:NOT_SET_ANYWHERE" in caplog.text


def test_a_secret_is_read_anew_so_that_a_rotated_one_counts_at_once(tick, monkeypatch):
    monkeypatch.setenv("DRAIN_SECRET", "old")
    tick = Tick(lambda budget: DONE, (Secret("env:DRAIN_SECRET"),))
    assert call(tick, headers=[(b"authorization", b"Bearer old")]).status == 200
    monkeypatch.setenv("DRAIN_SECRET", "new")
    assert call(tick, headers=[(b"authorization", b"Bearer old")]).status == 401
    assert call(tick, headers=[(b"authorization", b"Bearer new")]).status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_only_a_post_works(tick, budgets, method):
    reply = call(tick, method=method)
    assert (reply.status, reply.headers[b"allow"]) == (405, b"POST")
    assert budgets == []


@pytest.mark.parametrize(("query", "budget"), [(b"budget=50s", 50), (b"budget=1m30s", 90), (b"x=1", 25), (b"", 25)])
def test_the_caller_says_how_long(tick, budgets, query, budget):
    assert call(tick, query=query).status == 200
    assert budgets == [budget]


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        (b"budget=soon", 'budget: "soon" is not a duration. Write a number and a unit'),
        (b"budget=25", 'budget: "25" is not a duration'),
        (b"budget=11m", 'budget: "11m" is out of bounds. Choose one from 1s to 10m'),
        (b"budget=1ms", "is out of bounds"),
        (b"budget=%ff%00", "is not a duration"),
    ],
)
def test_a_budget_that_cannot_be_is_told(tick, budgets, query, detail):
    reply = call(tick, query=query)
    assert reply.status == 400
    assert detail in reply.json["detail"]
    assert budgets == []


def test_trouble_with_the_store_is_503(caplog):
    def drain(budget):
        raise StoreUnavailable("shop.db: the disk is full")

    with caplog.at_level(logging.WARNING):
        reply = call(Tick(drain, SECRETS))
    assert reply.status == 503
    assert reply.json["detail"] == "The store does not answer. Nothing is lost; call again later"
    assert "shop.db" not in reply.body.decode()
    assert "a drain found the store in trouble: shop.db: the disk is full" in caplog.text


def test_so_many_run_at_once_and_no_more():
    go, running = threading.Event(), threading.Semaphore(0)

    def drain(budget):
        running.release()
        go.wait(10)
        return DONE

    tick = Tick(drain, SECRETS)

    async def story():
        calls = [asyncio.create_task(asked(tick, Call())) for _ in range(AT_ONCE)]
        for _ in calls:
            await asyncio.to_thread(running.acquire)
        refused = await asked(tick, Call())
        go.set()
        return refused, await asyncio.gather(*calls), await asked(tick, Call())

    refused, replies, later = asyncio.run(story())
    assert (refused.status, refused.headers[b"retry-after"]) == (429, b"5")
    assert [reply.status for reply in replies] == [200] * AT_ONCE
    assert later.status == 200
