import hashlib
import hmac
import http.client
import json
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli import support
from tests.cli.support import Ran
from treppe.cli.logs import AsJson, AsText
from treppe.testing.destination import FakeDestination

Treppe = Callable[..., Ran]
PATIENCE = 30.0
TASKS = """
from pathlib import Path
from treppe.app import Retry, Treppe

app = Treppe("sqlite:///treppe.db")

@app.task(name="write")
def write(name: str) -> int:
    return Path(name).write_text("done")

@app.task(name="fail")
def fail() -> None:
    raise Retry("on purpose", after=3600)
"""


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A treppe of its own, told to stop at the end."""
    command = [sys.executable, "-m", "treppe", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Ask it to stop, and return exit code and stderr."""
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, errors


def until(holds: Callable[[], object]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < give_up, "it did not come about in time"
        time.sleep(0.01)


@pytest.fixture
def module(folder: Path, request: pytest.FixtureRequest) -> str:
    name = f"running_{abs(hash(request.node.nodeid))}"
    (folder / f"{name}.py").write_text(TASKS)
    (folder / "treppe.toml").write_text('store = "sqlite:///treppe.db"')
    return f"{name}:app"


def test_up_takes_a_webhook_in_delivers_it_and_ends_in_good_order(folder: Path) -> None:
    with FakeDestination() as crm:
        settings = support.SETTINGS.replace("https://crm.example.com", f"http://127.0.0.1:{crm.port}")
        reach = 'idempotency = { header = "Idempotency-Key" }\nallow_http = true\nallow_networks = ["127.0.0.0/8"]'
        settings = settings.replace('idempotency = { header = "Idempotency-Key" }', reach)
        (folder / "treppe.toml").write_text(settings.replace('"invoice", ', "") + "\n[web]\nport = 0\n")
        with running("up") as process:
            assert process.stdout is not None
            address = process.stdout.readline().strip().removeprefix("Treppe is up: ")
            assert post(address, b'{"customer": 7}') == 202
            until(lambda: crm.calls)
            assert crm.calls[0].body == b'{"customer": 7}'
            assert crm.calls[0].header("Idempotency-Key")
            code, errors = ended(process)
    assert code == 0
    assert "WARNING treppe.cli: line 12, destination.invoice: no source sends here" in errors


def post(address: str, body: bytes) -> int:
    host = address.removeprefix("http://").partition("/")[0]
    signature = hmac.new(b"correct-horse-battery", body, hashlib.sha256).hexdigest()
    connection = http.client.HTTPConnection(host, timeout=PATIENCE)
    try:
        connection.request("POST", "/in/shop", body, {"X-Signature": signature, "X-Event-Id": "e1"})
        return connection.getresponse().status
    finally:
        connection.close()


def test_up_without_a_worker_only_takes_in(folder: Path) -> None:
    (folder / "treppe.toml").write_text(support.SETTINGS + "\n[web]\nport = 0\n")
    support.waiting(folder, "a")
    with running("up", "--no-worker") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip().removeprefix("Treppe is up: ")
        assert post(address, b"{}") == 202
        assert ended(process)[0] == 0
    with support.a_store(folder) as store:
        assert store.backlog().total("waiting") == 3


def test_a_worker_carries_out_what_waits_and_ends_in_good_order(folder: Path, treppe: Treppe, module: str) -> None:
    result = folder / "result"
    assert treppe("-a", module, "enqueue", "write", "--arg", f"name={json.dumps(str(result))}", "--id", "w").code == 0
    with running("work", "--app", module) as process:
        until(lambda: support.state_of(folder, "w") == "done")
        assert ended(process)[0] == 0
    assert result.read_text() == "done"
    assert json.loads(treppe("jobs", "show", "w", "--json").out)["result"] == "4"


def test_a_drain_works_off_what_is_due_and_tells_the_figures(folder: Path, treppe: Treppe, module: str) -> None:
    treppe("-a", module, "enqueue", "write", "--arg", f"name={json.dumps(str(folder / 'result'))}")
    treppe("-a", module, "enqueue", "fail")
    ran = treppe("-a", module, "drain", "--budget", "20s", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert (found["done"], found["failed"], found["stopped"]) == (1, 1, "empty")
    assert (folder / "result").read_text() == "done"
    ran = treppe("-a", module, "drain", "--budget", "1s")
    assert ran.out.splitlines()[0].split() == ["done", "0"]
    assert "next due in  " in ran.out


def test_a_budget_is_a_duration(treppe: Treppe) -> None:
    assert '--budget: "soon" is not a duration' in treppe("drain", "--budget", "soon").err
    assert '--budget: "1ms" is out of bounds. Choose one from 1s to 1d' in treppe("drain", "--budget", "1ms").err


@pytest.mark.parametrize("command", ["up", "work", "drain"])
def test_settings_with_errors_start_nothing(
    folder: Path, treppe: Treppe, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("SHOP_SECRET")
    (folder / "treppe.toml").write_text(support.SETTINGS.replace("https://crm", "http://crm"))
    ran = treppe(command)
    assert ran.code == 2
    assert ran.err.splitlines()[0] == "treppe: treppe.toml: it cannot start like this"
    assert "  line 7, source.shop.secret: env:SHOP_SECRET" in ran.err
    assert "  line 18, destination.crm.url: http sends" in ran.err
    assert not (folder / "treppe.db").exists()


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("treppe.test", logging.ERROR, __file__, 1, message, arguments, None)


def test_a_line_of_the_log_commands_no_terminal() -> None:
    assert AsText("%(message)s").format(record("job %s", "\x1b[2J")) == "job \\x1b[2J"


def test_a_line_of_the_log_for_machines_holds_the_traceback() -> None:
    try:
        raise ValueError("on purpose")
    except ValueError:
        line = record("it failed")
        line.exc_info = sys.exc_info()
    found = json.loads(AsJson().format(line))
    assert (found["level"], found["logger"], found["message"]) == ("error", "treppe.test", "it failed")
    assert "ValueError: on purpose" in found["error"]


def test_the_log_is_as_loud_as_it_was_asked_to_be(treppe: Treppe, module: str) -> None:
    treppe("-a", module, "drain", "--budget", "1s", "--log-level", "error", "--log-json")
    assert logging.getLogger().level == logging.ERROR
    assert isinstance(logging.getLogger().handlers[0].formatter, AsJson)
    assert logging.getLogger("uvicorn").level == logging.WARNING
    treppe("-a", module, "drain", "--budget", "1s", "--log-level", "debug")
    assert logging.getLogger().level == logging.DEBUG
