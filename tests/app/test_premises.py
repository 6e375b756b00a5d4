import asyncio
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.worker.support import claimed, numbered, put, states, until
from treppe import Backoff, ConfigError, Treppe, Unclear, Wait
from treppe.app import open_store
from treppe.app.premises import MARGIN, Premises, deliver_one, queues_of
from treppe.config import Destination, Probe, Queue, Rate, Settings
from treppe.errors import StoreUnavailable
from treppe.job import Kind, NewJob, Outcome, Repeat
from treppe.policy.pace import Flow, encode
from treppe.policy.pace import pause as paused
from treppe.testing.destination import FakeDestination, answer
from treppe.upkeep import Upkeep
from treppe.worker import Run

NOWHERE = "http://127.0.0.1:9/"


def to(port: int, name: str = "crm", **fields) -> Destination:
    """A destination on this machine."""
    reach = {"allow_networks": ("127.0.0.0/8",), "allow_http": True}
    return Destination(name, f"http://127.0.0.1:{port}/in", **reach | fields)


def settings_of(folder: Path, *destinations: Destination, **fields) -> Settings:
    by_name = {destination.name: destination for destination in destinations}
    return Settings(f"sqlite:///{folder}/jobs.db", destinations=by_name, **fields)


@contextmanager
def opened(premises: Premises):
    with premises.open() as store:
        store.lease = 0.3
        yield store


@pytest.fixture
def app(tmp_path):
    app = Treppe(open_store(f"sqlite:///{tmp_path}/jobs.db", durable=False))
    app.task(name="task", queue="q")(lambda: None)
    yield app
    app.close()


@pytest.fixture
def premises(app, tmp_path) -> Premises:
    return Premises(settings_of(tmp_path), app)


def delivery(id: str, **fields) -> NewJob:
    return NewJob(id, "destination:crm", "crm", b'{"a": 1}', **fields)


# What there is to do


def test_tasks_and_destinations_are_worked_on_together(app, tmp_path):
    with FakeDestination() as crm:
        premises = Premises(settings_of(tmp_path, to(crm.port)), app)
        assert premises.tasks == ["destination:crm", "task"]
        with opened(premises) as store:
            app.tasks["task"].enqueue()
            store.put([delivery("order:1")])
            assert premises.drain(store, 20)["done"] == 2
        assert [call.body for call in crm.calls] == [b'{"a": 1}']


def test_without_an_app_the_store_of_the_settings_is_opened(tmp_path):
    premises = Premises(settings_of(tmp_path), None)
    assert premises.tasks == []
    with premises.open() as store:
        assert store.path == str(tmp_path / "jobs.db")
        assert premises.drain(store, 1)["stopped"] == "empty"


def test_settings_that_say_nothing_leave_the_store_to_the_app(app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Premises(Settings(app="shop:app"), app).open() as store:
        assert store is app.store
    assert not (tmp_path / "treppe.db").exists()


@pytest.mark.parametrize("relative", [True, False])
def test_two_ways_to_one_file_are_the_same_store(app, tmp_path, monkeypatch, relative):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.db").symlink_to(tmp_path / "jobs.db")
    store = "sqlite:///link.db" if relative else f"sqlite:///{tmp_path}/../{tmp_path.name}/jobs.db"
    with Premises(Settings(store, language="de"), app).open() as found:
        assert found is app.store


def test_two_stores_are_refused(app, tmp_path):
    settings = Settings(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(ConfigError) as refused, Premises(settings, app).open():
        pass
    assert str(refused.value) == (
        f"store: the app keeps its jobs in {tmp_path}/jobs.db, the settings say {tmp_path}/other.db. "
        "Let both name the same"
    )


def test_a_destination_whose_queue_says_nothing_is_called_sixteen_at_a_time(app):
    app.queue("shop:*", concurrent=2)
    app.queue("lexware", rate="2/s")
    destinations = {
        name: Destination(name, NOWHERE, queue=queue)
        for name, queue in {"crm": "", "acme": "shop:acme", "invoice": "lexware", "stock": "named"}.items()
    }
    settings = Settings(queues={"named": Queue("named")}, destinations=destinations)
    found = queues_of(settings, app)
    assert found.keys() == {"crm", "shop:*", "lexware", "named"}
    assert found["crm"] == Queue("crm", concurrent=16)
    assert found["lexware"].rate == Rate(2, 1.0)
    assert found["named"].concurrent is None
    assert queues_of(Settings()) == {}


# Delivering


def run_of(store, id: str) -> Run:
    (claim,) = claimed(store, 1, "destination:crm")
    assert claim.id == id
    return Run(claim, None, store)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("probes", "kind", "calls"),
    [
        ([answer(200)], Kind.OK, [("GET", "/alive"), ("POST", "/in")]),
        ([answer(500)], Kind.FAILED, [("GET", "/alive")]),
        ([answer(401)], Kind.LOGIN, [("GET", "/alive")]),
    ],
)
def test_a_probe_asks_the_harmless_question_first(tmp_path, probes, kind, calls):
    """What it meets says for certain that the job itself was not sent."""
    from treppe.delivery.http import Delivery

    with FakeDestination(*probes) as crm, closing(open_store(f"sqlite:///{tmp_path}/jobs.db", durable=False)) as store:
        destination = to(crm.port, probe=Probe(f"http://127.0.0.1:{crm.port}/alive"))
        store.put([delivery("order:1", repeat=Repeat.ASK)])
        run = run_of(store, "order:1")
        run.claim.probe = True

        async def story() -> Outcome:
            wire = Delivery({"crm": destination})
            try:
                return await deliver_one(wire, destination, run)
            finally:
                await wire.aclose()

        outcome = asyncio.run(story())
        assert outcome.kind is kind
        assert kind is Kind.OK or outcome.acted is False
        assert [(call.method, call.path) for call in crm.calls] == calls


def test_a_delivery_has_a_limit_of_its_own_and_one_around_it(tmp_path):
    settings = settings_of(tmp_path, to(9, timeout=7.0), to(9, "erp", timeout=3.0, probe=Probe(NOWHERE)))
    handlers = {}
    premises = Premises(settings, None)
    asyncio.run(premises._delivery(handlers).aclose())
    assert handlers["destination:crm"].timeout == 7.0 + MARGIN
    assert handlers["destination:erp"].timeout == 6.0 + MARGIN
    assert handlers["destination:crm"].in_loop


def test_a_delivery_that_fails_waits_as_its_destination_says(tmp_path):
    with FakeDestination(answer(500), answer(200)) as crm:
        destination = to(crm.port, backoff=Backoff(base=0.05, cap=0.05))
        premises = Premises(settings_of(tmp_path, destination), None)
        with opened(premises) as store:
            store.put([delivery("order:1")])
            assert premises.drain(store, 10)["done"] == 1
        assert len(crm.calls) == 2


# Draining


def test_a_drain_says_what_it_did(app, premises):
    def once(n: int) -> None:
        match n:
            case 1:
                raise Wait("not yet", after=3600)
            case 2:
                raise Unclear("who knows")

    task = app.task(name="numbered", queue="n")(once)
    app.enqueue_many([task.prepare(n) for n in range(5)])
    with opened(premises) as store:
        figures = premises.drain(store, 20)
    assert figures.pop("next_due_in_s") == pytest.approx(3600, abs=60)
    assert figures.pop("oldest_age_s") < 60
    assert figures == {"done": 3, "failed": 2, "waiting": 1, "stopped": "empty"}


def test_an_empty_drain_says_so(premises):
    with opened(premises) as store:
        assert premises.drain(store, 5) == {
            "done": 0, "failed": 0, "waiting": 0, "oldest_age_s": None, "next_due_in_s": None, "stopped": "empty",
        }  # fmt: skip


def test_a_drain_whose_time_is_over_says_so(app, premises):
    task = app.task(name="slow", queue="slow")(lambda: time.sleep(0.3))
    app.enqueue_many([task.prepare() for _ in range(100)])
    with opened(premises) as store:
        figures = premises.drain(store, 0.2)
    assert figures["stopped"] == "budget"
    assert 0 < figures["done"] < 100
    assert figures["waiting"] == 100 - figures["done"]
    assert figures["oldest_age_s"] > 0


def test_a_drain_of_a_queue_that_does_not_go_says_so(app, premises):
    pause = paused(Flow(), by="anna", at=0.0)
    with opened(premises) as store:
        store.journal.swap("flow:q", None, encode(pause))
        app.tasks["task"].enqueue()
        figures = premises.drain(store, 5)
    assert (figures["stopped"], figures["waiting"]) == ("held", 1)


def test_work_for_others_is_told(premises, caplog):
    with opened(premises) as store:
        put(store, *numbered(3), task="nobody's")
        figures = premises.drain(store, 5)
    assert (figures["stopped"], figures["waiting"]) == ("unknown", 3)
    assert "due jobs of tasks that are not known here: nobody's (3). Start a worker that knows them" in caplog.text


def test_a_worker_tells_of_work_for_others_now_and_then(premises, caplog):
    stop = threading.Event()
    with opened(premises) as store:
        put(store, "lost", task="nobody's")
        premises._look_for_unknown = 0.0
        worker = threading.Thread(target=premises.work, args=(store, stop))
        worker.start()
        until(lambda: "not known here: nobody's (1)" in caplog.text)
        premises.stop()
        worker.join(10)


def test_where_only_drains_run_a_killed_one_is_found_by_the_next(app, premises):
    """Nobody else is there for a whole lease: so the drain waits, if its budget allows, and takes the work up."""
    with opened(premises) as store:
        put(store, *numbered(5), payload=b"{}")
        claimed(store, 5, worker=4711, lease=0.05)
        figures = premises.drain(store, 20)
        assert (figures["done"], figures["stopped"]) == (5, "empty")
        assert states(store, *numbered(5)) == {"done"}


def test_a_drain_without_the_time_to_wait_for_a_lease_ends(app, premises):
    with opened(premises) as store:
        put(store, "lost")
        claimed(store, 1, lease=0.05)
        store.lease = 30
        began = time.monotonic()
        assert premises.drain(store, 3)["done"] == 0
        assert time.monotonic() - began < 2


def test_a_drain_of_what_a_living_worker_does_takes_nothing_away(app, premises):
    with opened(premises) as store:
        put(store, "theirs")
        claimed(store, 1, lease=3600)
        assert premises.drain(store, 5)["done"] == 0
        assert states(store, "theirs") == {"running"}


def test_beside_a_worker_a_drain_leaves_upkeep_to_it(app, premises):
    go, stop = threading.Event(), threading.Event()
    task = app.task(name="hang", queue="hang")(lambda: go.wait(10) and None)
    with opened(premises) as store:
        store.lease = 30
        task.using(id="job").enqueue()
        worker = threading.Thread(target=premises.work, args=(store, stop))
        worker.start()
        until(lambda: states(store, "job") == {"running"})
        began = time.monotonic()
        assert premises.drain(store, 60)["done"] == 0
        assert time.monotonic() - began < 10
        go.set()
        until(lambda: states(store, "job") == {"done"})
        premises.stop()
        worker.join(10)
    assert not worker.is_alive()


def test_stopped_everything_ends_and_nothing_begins(app, premises):
    go = threading.Event()
    task = app.task(name="hang", queue="hang")(lambda: go.wait(10) and None)
    with opened(premises) as store:
        task.using(id="job").enqueue()
        figures: list[dict] = []
        drain = threading.Thread(target=lambda: figures.append(premises.drain(store, 60)))
        drain.start()
        until(lambda: states(store, "job") == {"running"})
        premises.stop()
        go.set()
        drain.join(10)
        assert figures[0]["stopped"] == "stopping"
        app.tasks["task"].using(id="later").enqueue()
        assert premises.drain(store, 60)["stopped"] == "stopping"
        premises.work(store, threading.Event())
        assert states(store, "later") == {"waiting"}


def test_a_drain_that_waits_for_a_lease_can_be_stopped(app, premises):
    with opened(premises) as store:
        put(store, "lost")
        claimed(store, 1, lease=0.05)
        store.lease = 30
        drain = threading.Thread(target=premises.drain, args=(store, 3600))
        drain.start()
        until(lambda: not premises._workers and drain.is_alive() and premises.stop() is None)
        drain.join(10)
        assert not drain.is_alive()
        assert Upkeep(store).patience > 0


def test_a_store_that_is_not_there_yet_is_waited_for(tmp_path, monkeypatch, caplog):
    premises = Premises(Settings(store=f"sqlite:///{tmp_path / 'late.db'}"), None)
    opens, tries = premises._store, []

    def opens_the_third_time():
        tries.append(1)
        if len(tries) < 3:
            raise StoreUnavailable("the database system is starting up")
        return opens()

    monkeypatch.setattr(premises, "_store", opens_the_third_time)
    monkeypatch.setattr("treppe.app.premises.AGAIN_AFTER", 0.001)
    with premises.open(patience=60) as store:
        assert store.backlog().open == 0
    assert caplog.text.count("the store is not there yet, trying again for") == 2


def test_a_store_that_does_not_come_ends_the_patience(tmp_path, monkeypatch):
    premises = Premises(Settings(store=f"sqlite:///{tmp_path / 'never.db'}"), None)

    def never():
        raise StoreUnavailable("nobody listens there")

    monkeypatch.setattr(premises, "_store", never)
    monkeypatch.setattr("treppe.app.premises.AGAIN_AFTER", 0.001)
    with pytest.raises(StoreUnavailable, match="nobody listens there"), premises.open(patience=0.01):
        pass
