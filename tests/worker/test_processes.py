"""Workers as real processes: stopped, continued, ended, killed."""

import json
import signal
import time
from collections import Counter
from pathlib import Path

from tests.worker.support import LEASE, ask, child, lapse, numbered, put, states, sync, until, working
from treppe.job import Event, Settlement
from treppe.store.protocol import Filter


def ran(file: Path) -> list[str]:
    """The ids of the jobs that ran in a child, as they left them in a file."""
    trace = file.parent / "ran"
    return trace.read_text().split() if trace.exists() else []


def go(file: Path) -> None:
    """Let the jobs that hang come to their end."""
    (file.parent / "go").touch()


def ended(process) -> tuple[dict[str, int], str]:
    """The tally and the log of a child, when it has ended by itself."""
    out, log = process.communicate(timeout=20)
    assert process.returncode == 0, log
    return json.loads(out), log


def test_a_worker_that_stood_still_for_too_long_may_still_settle_what_nobody_took(store, file):
    put(store, "job", task="hang")
    with child(file) as process:
        until(lambda: ran(file))
        process.send_signal(signal.SIGSTOP)
        lapse(store, "job")
        assert store.get("job").suspect
        go(file)
        process.send_signal(signal.SIGCONT)
        until(lambda: states(store, "job") == {"done"})
        process.terminate()
        tally, _ = ended(process)
    assert (tally["done"], tally["refused"]) == (1, 0)
    assert ran(file) == ["job"]
    assert store.get("job").crashes == 0


def test_a_worker_that_stood_still_is_refused_what_somebody_else_has(store, file):
    put(store, "job", task="hang")
    with child(file) as process:
        until(lambda: ran(file))
        process.send_signal(signal.SIGSTOP)
        lapse(store, "job")
        store.enlist(1, "the other", 3600)
        (theirs,) = until(lambda: take_suspect(store))
        go(file)
        process.send_signal(signal.SIGCONT)
        assert until(lambda: told(process)) == 'job "job" was taken back meanwhile; its end (finish) does not count\n'
        assert states(store, "job") == {"running"}
        assert store.settle([Settlement(theirs, Event.FINISH, "ok", result=b'"theirs"')]) == ()
        process.terminate()
        tally, _ = ended(process)
    assert (tally["done"], tally["refused"]) == (0, 1)
    assert store.get("job").result == b'"theirs"'
    assert [line.event for line in store.get("job").history] == [Event.LAPSE, Event.FINISH]


def take_suspect(store):
    from tests.worker.support import FREE
    from treppe.store.protocol import Wanted

    return store.claim(Wanted(1, 1, 1, frozenset({"hang"}), alone=True), FREE).claims


def told(process) -> str:
    """The next line of a child's log that tells of a settle that came too late."""
    line = process.stderr.readline()
    return line if "taken back" in line else ""


def test_told_to_stop_it_lets_running_jobs_end_and_gives_the_rest_back_uncharged(store, file):
    ids = numbered(30)
    put(store, *ids, task="hang")
    with child(file, threads=4) as process:
        until(lambda: len(ran(file)) == 4)
        process.terminate()
        until(lambda: store.backlog().total("running") == 4)
        assert process.poll() is None
        go(file)
        tally, _ = ended(process)
    assert tally["done"] == 4
    assert sorted(ran(file)) == sorted(id for id in ids if states(store, id) == {"done"})
    for id in ids:
        job = store.get(id)
        assert (job.charged, job.crashes, job.suspect) == (0, 0, False)
    backlog = store.backlog()
    assert (backlog.done, backlog.total("waiting")) == (4, 26)


def test_what_was_killed_in_a_batch_runs_again_one_by_one_and_alone(store, file):
    ids = numbered(100)
    put(store, *ids, task="hang")
    with child(file, threads=100) as process:
        until(lambda: len(ran(file)) == 100)
        process.kill()
    lapse(store, *ids)
    assert all(store.get(id).suspect for id in ids)
    put(store, *numbered(20, "other"))
    beside: list[int] = []
    running: set[str] = set()

    def look(run):
        running.add(run.claim.id)
        if run.claim.suspect:
            beside.append(len(running))
        running.discard(run.claim.id)

    with working(store, {"hang": sync(look), "task": sync(look)}):
        until(lambda: store.backlog().done == 120)
    assert beside == [1] * 100
    for id in ids:
        job = store.get(id)
        assert (job.charged, job.crashes) == (0, 0)
        assert [line.event for line in job.history] == [Event.LAPSE, Event.FINISH]


def test_a_job_that_kills_its_worker_is_found_out_and_its_neighbours_lose_nothing(store, file):
    neighbours = numbered(20, "neighbour")
    put(store, "killer", task="exit", crashes=2)
    put(store, *neighbours)
    deaths = 0
    while states(store, "killer") != {"dead"}:
        with child(file, threads=3) as process:
            until(lambda process=process: process.poll() is not None or states(store, "killer") == {"dead"})
            deaths += process.poll() == 7
        assert deaths <= 3
    assert deaths == Counter(ran(file))["killer"] == 3  # once among others, and twice alone: its budget
    assert store.get("killer").error == "it kills its worker: 2 of 2 crashes"
    with child(file, act="drain") as process:
        assert ended(process)[0]["dead"] == 0
    for id in neighbours:
        job = store.get(id)
        assert (job.state, job.charged, job.crashes) == ("done", 0, 0)


def test_a_job_that_must_not_be_repeated_is_unclear_when_its_worker_is_killed(store, file):
    ask(store, "ask", task="hang")
    put(store, "safe", task="hang")
    with child(file) as process:
        until(lambda: len(ran(file)) == 2)
        process.kill()
    lapse(store, "ask", "safe")
    assert (states(store, "ask"), states(store, "safe")) == ({"unclear"}, {"waiting"})
    again: list[str] = []
    with working(store, {"hang": sync(lambda run: again.append(run.claim.id))}):
        until(lambda: states(store, "safe") == {"done"})
    assert again == ["safe"]
    assert states(store, "ask") == {"unclear"}
    assert [job.id for job in store.find(Filter(states=("unclear",))).jobs] == ["ask"]


def test_after_a_kill_the_next_one_finds_the_job(store, file):
    put(store, "job", task="hang")
    with child(file) as process:
        until(lambda: ran(file))
        process.kill()
        killed = time.monotonic()
    go(file)
    with child(file):
        until(lambda: states(store, "job") == {"done"})
        assert time.monotonic() - killed < LEASE + 2 + 2  # lease, poll, and the start of Python
