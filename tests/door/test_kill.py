"""What was answered with 2xx is in the store, whatever happens to the process in that moment."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.door.live import Client, request, until
from tests.door.support import signed
from treppe.store.protocol import Filter
from treppe.store.sqlite import SQLiteStore

ROOT = Path(__file__).parents[2]


@contextmanager
def door_process(database, *when):
    """A running door and its address; killed at the end if it is not dead yet."""
    command = [sys.executable, "-m", "tests.door.process", str(database), *when]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    try:
        port = int(process.stdout.readline())
        yield process, ("127.0.0.1", port)
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


class Shop:
    """Sends webhooks over several connections and writes down what was acknowledged."""

    def __init__(self):
        self.sent = set()
        self.acknowledged = set()

    def rush(self, address, name, enough):
        threads = [threading.Thread(target=self._send, args=(address, f"{name}-{n}", enough)) for n in range(8)]
        for thread in threads:
            thread.start()
        return threads

    def wait_for(self, acknowledged):
        until(lambda: len(self.acknowledged) >= acknowledged, "so many were acknowledged")

    def _send(self, address, name, enough):
        try:
            with Client(address) as client:
                for number in range(100_000):
                    if enough.is_set():
                        return
                    event = f"{name}-{number}"
                    self.sent.add(event)
                    client.send(request(signed(b'{"id": "%b"}' % event.encode(), event_id=event.encode())))
                    status, _, body = client.answer()
                    assert (status, json.loads(body)["duplicate"]) == (202, False)
                    self.acknowledged.add(event)
        except (OSError, EOFError):
            return  # the door is dead


def stored(database):
    """Event id -> destinations of its jobs."""
    store = SQLiteStore(database)
    found, after = {}, None
    try:
        while True:
            page = store.find(Filter(), after, 500)
            for job in page.jobs:
                found.setdefault(job.event[1].partition(":")[0], set()).add(job.task)
                assert store.event(*job.event) is not None
            after = page.after
            if after is None:
                return found
    finally:
        store.close()


def test_no_acknowledged_webhook_is_lost_when_the_door_is_killed(tmp_path):
    database, shop = tmp_path / "jobs.db", Shop()
    for more in (50, 100, 150, 200):
        enough = threading.Event()
        with door_process(database) as (process, address):
            threads = shop.rush(address, f"r{more}", enough)
            shop.wait_for(len(shop.acknowledged) + more)
            process.send_signal(signal.SIGKILL)
            enough.set()
            for thread in threads:
                thread.join(30)
            assert process.wait(10) == -signal.SIGKILL
    found = stored(database)
    assert shop.acknowledged - found.keys() == set()
    assert found.keys() - shop.sent == set()
    assert {frozenset(tasks) for tasks in found.values()} == {frozenset({"destination:crm", "destination:mail"})}


@pytest.mark.parametrize(("when", "duplicate"), [("before", False), ("after", True)])
def test_a_death_around_the_put_leaves_all_or_nothing_and_the_repeat_puts_it_right(tmp_path, when, duplicate):
    database = tmp_path / "jobs.db"
    webhook = request(signed(b"{}"))
    with door_process(database, when) as (process, address), Client(address) as client:
        client.send(webhook)
        assert client.rest() == b""
        assert process.wait(10) == 9
    assert len(stored(database)) == (1 if duplicate else 0)
    with door_process(database) as (_, address), Client(address) as client:
        client.send(webhook)
        status, _, body = client.answer()
    assert (status, json.loads(body)["duplicate"]) == (202, duplicate)
    assert stored(database) == {"e1": {"destination:crm", "destination:mail"}}


def test_an_orderly_end_answers_everything(tmp_path):
    database, shop = tmp_path / "jobs.db", Shop()
    enough = threading.Event()
    with door_process(database) as (process, address):
        threads = shop.rush(address, "r", enough)
        shop.wait_for(50)
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        enough.set()
        for thread in threads:
            thread.join(30)
    found = stored(database)
    assert shop.acknowledged - found.keys() == set()
    unanswered = found.keys() - shop.acknowledged
    assert unanswered == set()
