"""The ways to run, as real processes: ``python -m treppe`` with settings in a folder of its own."""

import hashlib
import hmac
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.worker.support import until
from treppe import StoreError, Treppe
from treppe.app import open_store
from treppe.config import Settings
from treppe.run import drain, running_beside, stopped_by_signals
from treppe.testing.destination import FakeDestination

PATIENCE = 20.0
FIRST, SECOND, HUSH = (f"{word}-0123456789abcdef" for word in ("first", "second", "hush"))
SETTINGS = f"""
store = "sqlite:///shop.db"
app = "shop:app"

[web]
port = 0
drain_secret = ["plain:{FIRST}", "plain:{SECOND}"]

[source.shop]
secret = "plain:{HUSH}"
verify = {{ header = "X-Signature" }}
id = ["header:X-Event-Id"]
send_to = ["crm"]

[destination.crm]
url = "http://127.0.0.1:PORT/in"
idempotency = {{ header = "Idempotency-Key" }}
allow_http = true
allow_networks = ["127.0.0.0/8"]
"""
SHOP = """
import time
from pathlib import Path
from treppe import Treppe

app = Treppe("sqlite:///shop.db")

@app.task(name="note", queue="note")
def note(name: str) -> None:
    with Path("ran").open("a") as file:
        file.write(name + "\\n")

@app.task(name="hang", queue="hang")
def hang(name: str) -> None:
    note(name)
    while not Path("go").exists():
        time.sleep(0.005)
    note(f"{name}-end")
"""


class House(NamedTuple):
    """A folder with settings and an app, in which treppe is called."""

    folder: Path

    @property
    def app(self) -> Treppe:
        app = Treppe(open_store(f"sqlite:///{self.folder}/shop.db"))
        app.task(name="note", queue="note")(lambda name: None)
        app.task(name="hang", queue="hang")(lambda name: None)
        return app

    def enqueue(self, task: str, *names: str) -> None:
        app = self.app
        app.enqueue_many([app.tasks[task].using(id=name).prepare(name) for name in names])
        app.close()

    def states(self, *names: str) -> Counter[str]:
        app = self.app
        found = Counter(app.job(name).state.value for name in names)
        app.close()
        return found

    def ran(self) -> list[str]:
        trace = self.folder / "ran"
        return trace.read_text().split() if trace.exists() else []

    def go(self) -> None:
        (self.folder / "go").touch()

    @contextmanager
    def process(self, *arguments: str):
        """Treppe in a process of its own, killed at the end."""
        command = [sys.executable, "-m", "treppe", *arguments]
        process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=PATIENCE)


def ended(process) -> tuple[int, str]:
    """Exit code and log of a process that ends by itself."""
    _, log = process.communicate(timeout=PATIENCE)
    return process.returncode, log


def port_of(process) -> int:
    """Where `treppe up` listens, as it tells."""
    line = process.stdout.readline()
    assert line.startswith("Treppe is up: http://127.0.0.1:"), process.communicate()[1]
    return int(line.removeprefix("Treppe is up: http://127.0.0.1:").partition("/")[0])


def call(port: int, method: str, path: str, body: bytes = b"", **headers: str):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except ConnectionError:
        return False
    return True


def webhook(port: int, event: str) -> int:
    body = json.dumps({"event": event}).encode()
    signature = hmac.new(HUSH.encode(), body, hashlib.sha256).hexdigest()
    return call(port, "POST", "/in/shop", body, X_Signature=signature, X_Event_Id=event)[0]


@pytest.fixture
def crm():
    with FakeDestination() as crm:
        yield crm


@pytest.fixture
def house(tmp_path, crm) -> House:
    (tmp_path / "treppe.toml").write_text(SETTINGS.replace("PORT", str(crm.port)))
    (tmp_path / "shop.py").write_text(SHOP)
    return House(tmp_path)


def test_up_answers_at_every_door_works_and_ends_in_good_order(house, crm):
    house.enqueue("note", "one")
    with house.process("up") as process:
        port = port_of(process)
        assert call(port, "GET", "/healthz") == (200, b'{"status":"ok"}')
        assert call(port, "GET", "/readyz") == (200, b'{"status":"ok"}')
        assert call(port, "GET", "/")[0] == 307
        assert call(port, "GET", "/board/")[0] in (200, 303)
        assert call(port, "GET", "/nowhere")[0] == 404
        assert webhook(port, "e1") == 202
        assert crm.wait_for(1)[0].body == b'{"event": "e1"}'
        until(lambda: house.ran() == ["one"])
        for token, status in (("", 401), ("Bearer wrong", 401), (f"Bearer {FIRST}", 200), (f"Bearer {SECOND}", 200)):
            got, body = call(port, "POST", "/v1/drain?budget=2s", Authorization=token)
            assert (got, FIRST.encode() in body) == (status, False)
        assert json.loads(body)["stopped"] == "empty"
        process.terminate()
        code, log = ended(process)
    assert code == 0, log
    assert "Traceback" not in log


def test_asked_to_end_it_lets_running_jobs_end_and_loses_nothing(house):
    names = [f"job-{n}" for n in range(30)]
    house.enqueue("hang", *names)
    with house.process("up") as process:
        port = port_of(process)
        until(lambda: len(house.ran()) == 10)
        process.terminate()
        until(lambda: not listens(port))
        assert process.poll() is None
        assert house.states(*names) == {"running": 10, "waiting": 20}
        house.go()
        assert ended(process)[0] == 0
    assert house.states(*names) == {"done": 10, "waiting": 20}
    assert len(house.ran()) == 20


def test_what_was_accepted_before_a_kill_is_delivered_once_after_the_restart(house, crm):
    events = [f"e{n}" for n in range(25)]
    with house.process("up", "--no-worker") as process:
        port = port_of(process)
        assert {webhook(port, event) for event in events} == {202}
        process.send_signal(signal.SIGKILL)
    with house.process("up") as process:
        port = port_of(process)
        until(lambda: len(crm.calls) >= 25)
        assert webhook(port, "e3") == 202  # the shop did not hear of it and sends it again
        assert webhook(port, "last") == 202
        until(lambda: json.dumps({"event": "last"}).encode() in [call.body for call in crm.calls])
        process.terminate()
        assert ended(process)[0] == 0
    got = Counter(json.loads(call.body)["event"] for call in crm.calls)
    assert got == Counter([*events, "last"])
    assert len({call.header("Idempotency-Key") for call in crm.calls}) == 26


@pytest.mark.parametrize("command", ["up", "work"])
def test_the_second_signal_ends_it_at_once(house, command):
    house.enqueue("hang", "job")
    with house.process(command) as process:
        until(lambda: house.ran() == ["job"])
        process.send_signal(signal.SIGINT)
        until(lambda: process.poll() is not None or process.send_signal(signal.SIGTERM))
        assert process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT)  # whichever is handled last
    assert house.states("job") == {"running": 1}


def test_work_works_until_it_is_asked_to_end(house, crm):
    house.enqueue("note", "one", "two")
    with house.process("work") as process:
        until(lambda: house.states("one", "two") == {"done": 2})
        process.send_signal(signal.SIGINT)
        code, log = ended(process)
    assert code == 0
    assert "working on destination:crm, hang, note" in log


def test_a_drain_is_ended_by_a_signal_as_well(house):
    house.enqueue("hang", "job")
    house.enqueue("note", *[f"note-{n}" for n in range(5)])
    with house.process("drain", "--budget", "1h", "--json") as process:
        until(lambda: "job" in house.ran())
        process.terminate()
        house.go()
        out, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, log
    assert json.loads(out)["stopped"] == "stopping"
    assert house.states("job") == {"done": 1}


def test_a_drain_says_what_it_did(house):
    house.enqueue("note", "one", "two")
    with house.process("drain", "--budget", "20s", "--json") as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert json.loads(out) == {
        "done": 2, "failed": 0, "waiting": 0, "oldest_age_s": None, "next_due_in_s": None, "stopped": "empty",
    }  # fmt: skip


def test_a_port_that_is_taken_is_told_before_anything_is_opened(house):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = (house.folder / "treppe.toml").read_text()
        (house.folder / "treppe.toml").write_text(text.replace("port = 0", f"port = {port}"))
        with house.process("up") as process:
            code, log = ended(process)
    assert code == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in log
    assert "Choose another port, or stop what listens there" in log
    assert not (house.folder / "shop.db").exists()


@pytest.mark.parametrize("command", [("up",), ("work",), ("drain", "--budget", "1s")])
def test_an_app_with_another_store_is_told(house, command):
    (house.folder / "shop.py").write_text(SHOP.replace("shop.db", "other.db"))
    with house.process(*command) as process:
        code, log = ended(process)
    assert code == 2
    assert f"the app keeps its jobs in {house.folder}/other.db, the settings say {house.folder}/shop.db" in log
    assert "Traceback" not in log


def test_a_store_that_cannot_be_opened_ends_up_with_its_sentence(house):
    (house.folder / "shop.db").write_text("name;price\n" * 200)
    with house.process("work") as process:
        code, log = ended(process)
    assert code in (2, 3)
    assert "not a" in log.replace("is not an", "is not a")
    assert "Traceback" not in log


# The parts


def test_a_drain_may_be_called_from_python(tmp_path):
    app = Treppe(f"sqlite:///{tmp_path}/jobs.db")
    app.task(name="note")(lambda: None)
    app.tasks["note"].enqueue()
    assert drain(Settings(f"sqlite:///{tmp_path}/jobs.db"), app, 10.0)["done"] == 1


def test_signals_are_as_before_when_it_has_ended():
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_signals() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(5)
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_of_the_main_thread_signals_are_left_to_others():
    found: list[bool] = []

    def elsewhere() -> None:
        with stopped_by_signals() as stop:
            found.append(stop.is_set())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [False]


def test_what_runs_beside_ends_with_the_block():
    stop, said = threading.Event(), []
    with running_beside([lambda stop: stop.wait(10) and said.append("ended")], stop, lambda: said.append("stopped")):
        assert said == []
    assert sorted(said) == ["ended", "stopped"]


def test_what_goes_wrong_beside_ends_the_block_and_is_raised():
    stop = threading.Event()

    def fail(stop: threading.Event) -> None:
        raise StoreError("the disk is gone")

    with pytest.raises(StoreError, match="the disk is gone"), running_beside([fail], stop, lambda: None):
        assert stop.wait(5)


def test_what_goes_wrong_in_the_block_comes_first():
    stop = threading.Event()
    with pytest.raises(ZeroDivisionError), running_beside([lambda stop: stop.wait(5)], stop, lambda: None):
        1 / 0  # noqa: B018


def test_garbage_is_collected_less_often_where_the_process_is_ours():
    program = (
        "import gc; from treppe.run import OBJECTS, collect_garbage_less_often as less; less(); "
        "print(gc.get_threshold()[0] == OBJECTS, gc.get_freeze_count() > 1000)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"
