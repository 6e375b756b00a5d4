import asyncio
import http.client
import logging
import socket
import ssl
import sys
import urllib.error
from datetime import timedelta
from typing import Any

import aiohttp
import msgspec
import pytest

from treppe import Bury, Down, Retry, State, Unclear, Wait
from treppe.app.outcomes import DOWN_BY_NAME, raised, returned, says_down, text_of
from treppe.job import Attempt, Event, Job, Kind, Outcome
from treppe.testing.kit import drain

pytestmark = pytest.mark.usefixtures("clock")
LOUD = "treppe.task"


class Mute(Exception):
    """Nobody can read it."""

    def __str__(self) -> str:
        raise SystemExit("not even that")


class Own(Exception):
    """Of the user's own."""


def run(app, function, repeat="safe", **settings) -> tuple[Job, Attempt]:
    """Enqueue one job of this function, run it with a real worker; the job, and the line of its first attempt."""
    placed = app.task(name="task", queue="q", repeat=repeat, **settings)(function).enqueue()
    drain(app)
    job = app.job(placed.id)
    return job, job.history[0]


def plain(error: BaseException):
    def task():
        raise error

    return task


def in_loop(error: BaseException):
    async def task():
        await asyncio.sleep(0)
        raise error

    return task


BOTH = pytest.mark.parametrize("make", [plain, in_loop])


# What it raises


@BOTH
@pytest.mark.parametrize(
    ("ending", "state", "kind", "charged", "error"),
    [
        (Retry("the template is broken", after=60), State.WAITING, Kind.CHARGED, True, "the template is broken"),
        (Wait("not yet", after="15m"), State.WAITING, Kind.SNOOZED, False, "not yet"),
        (Down("502", after=60), State.WAITING, Kind.DOWN, False, "502"),
        (Unclear("it broke off"), State.UNCLEAR, Kind.UNCLEAR, False, "it broke off"),
        (Bury("no such customer"), State.DEAD, Kind.REFUSED, False, "no such customer"),
        (Bury(), State.DEAD, Kind.REFUSED, False, "bury"),
        (Bury(ValueError("of another kind")), State.DEAD, Kind.REFUSED, False, "of another kind"),
        (Bury(404), State.DEAD, Kind.REFUSED, False, "404"),
        (Bury("\ud800\0"), State.DEAD, Kind.REFUSED, False, "��"),
    ],
)
def test_a_task_says_how_it_ended(app, make, ending, state, kind, charged, error):
    job, line = run(app, make(ending))
    assert (job.state, line.kind, line.charged, line.error) == (state, kind, charged, error)
    assert job.charged == charged


@pytest.mark.parametrize(
    ("ending", "least", "most"),
    [
        (Wait(after=90), 90, 90),
        (Retry(after=90), 90, 90),
        (Down(after=90), 90, 99.1),
        (Wait(), 1, 10),
        (Retry(), 1, 10),
    ],
)
def test_a_task_says_when_to_try_again(app, clock, ending, least, most):
    job, _ = run(app, plain(ending))
    assert job.run_at is not None
    assert least <= job.run_at - clock() <= most


def test_a_time_that_has_passed_is_now():
    assert Wait(after=-5).after == Wait(after=timedelta(seconds=-5)).after == Wait(after=float("nan")).after == 0.0


@pytest.mark.parametrize("after", ["soon", [], True])
def test_a_wait_that_cannot_be_read_is_a_failure_that_tells_it(app, after):
    _, line = run(app, lambda: (_ for _ in ()).throw(Wait(after=after)))
    assert line.kind is Kind.FAILED
    assert "after" in line.error or "not supported" in line.error


def test_an_order_of_the_budget_is_an_attempt(app, clock):
    job, _ = run(app, plain(Retry("mine", after=1)), attempts=3)
    for _ in range(2):
        clock.advance(2)
        drain(app)
    job = app.job(job.id)
    assert job.state is State.DEAD
    assert job.error == "3 of 3 attempts: mine"
    assert [line.charged for line in job.history] == [True, True, True]


@BOTH
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such thing"), "ValueError: no such thing"),
        (KeyError("sku"), "KeyError: 'sku'"),
        (Exception(), "Exception"),
        (Mute(), "Mute: (its text could not be read)"),
        (ValueError("\ud800\0" + "x" * 10_000), "ValueError: ��xxx"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError("made up"), "CancelledError: made up"),
        (MemoryError(), "MemoryError"),
        (StopIteration(), "StopIteration"),
        (ExceptionGroup("both", [ValueError("one"), KeyError("two")]), "ExceptionGroup: both (2 sub-exceptions)"),
        (msgspec.ValidationError("the API's answer does not fit"), "ValidationError: the API's answer does not fit"),
    ],
)
def test_any_other_exception_is_a_failure_that_is_tried_again(app, clock, make, error, text):
    job, line = run(app, make(error))
    assert (job.state, line.event, line.kind, line.charged) == (State.WAITING, Event.DEFER, Kind.FAILED, False)
    if make is in_loop and isinstance(error, StopIteration):
        text = "RuntimeError: coroutine raised StopIteration"
    assert line.error.startswith(text)
    assert len(line.error) <= 4000
    assert job.run_at is not None
    assert job.run_at >= clock() + 1


def test_recursion_without_end_is_a_failure(app):
    def deeper(n: int) -> int:
        return deeper(n + 1)

    _, line = run(app, lambda: deeper(0))
    assert line.error.startswith("RecursionError: maximum recursion depth exceeded")


def test_the_line_of_the_fault_is_kept_with_the_attempt(app):
    def task():
        price = {"net": 1}
        return price["gross"]

    _, line = run(app, task)
    found = msgspec.json.decode(line.detail)["traceback"]
    assert 'return price["gross"]' in found
    assert found.count("File ") == 1, "only the task's own frames"


def test_a_long_traceback_is_cut_to_where_the_fault_is(app):
    def deeper(n: int) -> None:
        if n:
            deeper(n - 1)
        raise ValueError("at the bottom" + "!" * 50_000)

    _, line = run(app, lambda: deeper(500))
    assert line.detail is not None
    assert len(line.detail) < 20_000


def test_a_failure_is_logged_with_its_traceback_and_trouble_of_others_in_one_line(app, caplog):
    caplog.set_level(logging.INFO, LOUD)
    run(app, plain(ZeroDivisionError("of mine")))
    (record,) = caplog.records
    assert "of task ended as failed: ZeroDivisionError: of mine" in record.getMessage()
    assert record.exc_info
    caplog.clear()
    app.task(name="down", queue="down")(plain(ConnectionError("of others"))).enqueue()
    app.task(name="wait", queue="wait")(plain(Wait("not yet", after=60))).enqueue()
    drain(app)
    assert sorted(record.getMessage().partition(" of ")[2] for record in caplog.records) == [
        "down ended as down: ConnectionError: of others",
        "wait ended as snoozed: not yet",
    ]
    assert [record.exc_info for record in caplog.records] == [None, None]
    assert {record.levelname for record in caplog.records} == {"WARNING", "INFO"}, "waiting is no warning"


# What means "the other side is down"


@BOTH
@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError("no"),
        ConnectionResetError(),
        BrokenPipeError(),
        TimeoutError(),
        socket.gaierror("no such host"),
        ssl.SSLError("bad certificate"),
        http.client.RemoteDisconnected("gone"),
        urllib.error.URLError(ConnectionRefusedError("no")),
        aiohttp.ClientConnectionError("no"),
        aiohttp.ServerTimeoutError("late"),
        aiohttp.ServerDisconnectedError(),
    ],
)
def test_connection_and_time_out_errors_are_the_other_sides(app, make, error):
    job, line = run(app, make(error))
    assert (job.state, line.kind, line.charged, job.charged) == (State.WAITING, Kind.DOWN, False, 0)


@pytest.mark.parametrize(
    "error",
    [
        OSError("disk full"),
        FileNotFoundError(),
        urllib.error.URLError("unknown url type"),
        urllib.error.HTTPError("http://x", 500, "no", None, None),  # type: ignore[arg-type]
        aiohttp.InvalidURL("x"),
        Own(),
    ],
)
def test_other_errors_are_not(error):
    assert not says_down(error)
    error_of_http = getattr(error, "close", lambda: None)
    error_of_http()


def of_package(package: str, *names: str) -> type[Exception]:
    """A class as the package makes it, for packages that are not installed here: the last name, with its bases."""
    made: type[Exception] = Exception
    for name in names:
        made = type(name, (made,), {"__module__": package})
    return made


@pytest.mark.parametrize(
    ("package", "names", "down"),
    [
        ("httpx", ("HTTPError", "RequestError", "TransportError", "TimeoutException", "ReadTimeout"), True),
        ("httpx", ("HTTPError", "HTTPStatusError"), False),
        ("requests.exceptions", ("RequestException", "ConnectionError", "ProxyError"), True),
        ("requests.exceptions", ("RequestException", "Timeout", "ReadTimeout"), True),
        ("requests.exceptions", ("RequestException", "HTTPError"), False),
        ("urllib3.exceptions", ("HTTPError", "NewConnectionError"), True),
        ("urllib3.exceptions", ("HTTPError", "LocationParseError"), False),
        ("somebody.requests", ("ConnectionError",), False),
    ],
)
def test_the_packages_people_use_are_known_by_name(package, names, down):
    assert says_down(of_package(package, *names)()) is down
    assert not (DOWN_BY_NAME.keys() - {"aiohttp", "socket", "ssl"}) & sys.modules.keys(), "nothing is imported for it"


def test_an_error_that_wraps_another_as_its_reason_is_looked_into():
    wrapped = of_package("urllib3.exceptions", "HTTPError", "MaxRetryError")()
    wrapped.reason = of_package("urllib3.exceptions", "NewConnectionError")()
    assert says_down(wrapped)
    wrapped.reason = wrapped
    assert not says_down(wrapped)


@pytest.mark.parametrize(
    ("down", "error", "kind"),
    [
        (Own, Own(), Kind.DOWN),
        ((Own, KeyError), KeyError("x"), Kind.DOWN),
        (Own, ConnectionError(), Kind.FAILED),
        ((), ConnectionError(), Kind.FAILED),
    ],
)
def test_a_task_names_its_own(app, down, error, kind):
    _, line = run(app, plain(error), down=down)
    assert line.kind is kind


# A task that must not be repeated


@BOTH
@pytest.mark.parametrize(
    "error", [ValueError("x"), ConnectionRefusedError("no"), TimeoutError(), SystemExit(1), Own(), Unclear("broke off")]
)
def test_of_a_task_that_must_not_be_repeated_an_error_says_nothing(app, make, error):
    """Its last call may have been refused, and the one before it may have acted."""
    job, line = run(app, make(error), repeat="ask", down=(Own, ConnectionError))
    assert (job.state, line.event, line.charged) == (State.UNCLEAR, Event.DOUBT, False)


@pytest.mark.parametrize("ending", [Retry("x"), Wait("x"), Down("x")])
def test_it_is_tried_again_when_it_says_so_itself(app, ending):
    job, _ = run(app, plain(ending), repeat="ask")
    assert job.state is State.WAITING


def test_it_is_buried_when_it_says_so_itself(app):
    assert run(app, plain(Bury("x")), repeat="ask")[0].state is State.DEAD


# What it returns


@pytest.mark.parametrize("value", [1, "ü", [1, {"a": None}], {"a": 1.5}, True, ""])
def test_what_a_task_returns_is_its_result(app, value):
    job, line = run(app, lambda: value)
    assert (job.state, line.event) == (State.DONE, Event.FINISH)
    assert app.result(job.id) == value


def test_nothing_returned_is_nothing_kept(app):
    job, _ = run(app, lambda: None)
    assert (job.state, job.result, app.result(job.id)) == (State.DONE, None, None)


class Loud:
    """Cannot be looked at."""

    def __iter__(self) -> Any:
        raise SystemError("hands off")


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize("value", [object(), {1, 2, object()}, "\ud800", endless(), Loud(), {(1, 2): 3}, lambda: 1])
def test_a_result_that_is_not_json_like_is_left_out_with_a_note(app, value):
    """The work is done; doing it again for the sake of its result would be the worse mistake."""
    job, line = run(app, lambda: value)
    assert (job.state, job.result) == (State.DONE, None)
    assert msgspec.json.decode(line.detail)["note"].startswith("the result was not kept, it is not JSON-like: ")


def test_a_huge_result_is_left_out_with_a_note(app):
    job, line = run(app, lambda: "x" * 50_000_000)
    assert (job.state, job.result) == (State.DONE, None)
    assert msgspec.json.decode(line.detail) == {"note": "the result of 50000002 bytes was not kept; the limit is 65536"}


def test_a_task_may_return_its_outcome(app):
    job, line = run(app, lambda: Outcome(Kind.REFUSED, "no such customer"))
    assert (job.state, line.error) == (State.DEAD, "no such customer")


@pytest.mark.parametrize("outcome", [Outcome("strange"), Outcome(Kind.OK, 7), Outcome(Kind.OK, result="text")])  # type: ignore[arg-type]
def test_an_outcome_that_cannot_be_is_a_failure(app, outcome):
    job, line = run(app, lambda: outcome)
    assert (job.state, line.kind) == (State.WAITING, Kind.FAILED)
    assert line.error.startswith("ValidationError: ")


async def never_awaited(n: int) -> None:
    raise AssertionError("nobody runs it")


def never_iterated(n: int):
    yield n


async def never_looped(n: int):
    yield n


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda: never_awaited(1), "coroutine"),
        (lambda: never_iterated(1), "generator"),
        (lambda: never_looped(1), "async_generator"),
    ],
)
def test_what_still_had_to_be_run_is_a_failure_not_a_success(app, function, kind):
    job, line = run(app, function)
    assert (job.state, line.kind) == (State.WAITING, Kind.FAILED)
    assert (
        line.error
        == f"it gave back a {kind} that nobody runs. Make the task an async function, or return a plain value"
    )


# A payload that no longer fits


@BOTH
def test_arguments_that_no_longer_fit_are_dead_with_a_path(app, make):
    task = app.task(name="task", queue="q")(lambda order: order)
    placed = task.enqueue({"lines": [{"n": "two"}]})

    class Line(msgspec.Struct):
        n: int

    class Order(msgspec.Struct):
        lines: list[Line]

    def plainly(order: Order) -> None: ...
    async def in_the_loop(order: Order) -> None: ...

    app.tasks.clear()
    app.task(name="task", queue="q")(plainly if make is plain else in_the_loop)
    drain(app)
    job = app.job(placed.id)
    assert job.state is State.DEAD
    assert job.error == "the arguments do not fit the task any more: Expected int, got str at order.lines[0].n"


# Whose fault it was


def test_a_job_that_fails_while_others_succeed_uses_up_its_attempts(app, clock):
    """The evidence is kept per task: three others succeed between two failures, and the failure is the job's own."""
    broken = {7}

    @app.task(name="invoice", queue="q", attempts=2)
    def invoice(order: int) -> None:
        if order in broken:
            raise ValueError("always")

    bad = invoice.enqueue(7)
    drain(app)
    for first in (10, 20):
        for n in range(3):
            invoice.enqueue(first + n)
        drain(app)
        clock.advance(3600 * 2)
        drain(app)
    job = app.job(bad.id)
    assert [line.charged for line in job.history] == [False, True, True]
    assert (job.state, job.error) == (State.DEAD, "2 of 2 attempts: ValueError: always")


def test_success_of_another_task_is_no_evidence(app, clock):
    other = app.task(name="other", queue="q")(lambda: None)
    job, _ = run(app, plain(ValueError("always")))
    for _ in range(4):
        for _ in range(5):
            other.enqueue()
        clock.advance(600)
        drain(app)
    assert app.job(job.id).claims > 2
    assert app.job(job.id).charged == 0


def test_an_outage_uses_up_nothing(app, clock):
    up = []

    @app.task(name="crm", queue="crm", attempts=1)
    def crm(n: int) -> None:
        if not up:
            raise ConnectionRefusedError("down")

    jobs = [crm.enqueue(n) for n in range(10)]
    for _ in range(20):
        clock.advance(120)
        drain(app, 1.0)
    assert app.store.backlog().total("dead") == 0
    up.append(True)
    for _ in range(200):
        clock.advance(300)
        drain(app, 1.0)
        if app.store.backlog().done == 10:
            break
    assert {app.job(job.id).state for job in jobs} == {State.DONE}
    assert {app.job(job.id).charged for job in jobs} == {0}


def test_the_value_is_the_same_without_a_worker():
    assert returned(None) is returned(None)
    assert raised(Own("x"), safe=True).error == "Own: x"
    assert text_of(Mute()) == "(its text could not be read)"
