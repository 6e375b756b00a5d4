"""kill -9 at every statement of accept, claim and settle: nothing answered is lost, nothing is settled twice."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.crash.child import TASKS
from treppe.job import Event, Kind, Outcome, State
from treppe.policy.pace import Pacer
from treppe.settle import AFTER_LAPSE, Rules, conclude
from treppe.store.protocol import Filter, Wanted
from treppe.store.sqlite import SQLiteStore

ROOT = Path(__file__).parents[2]


def run_child(path: Path, fatal: int) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "tests.crash.child", str(path), str(fatal)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return child.returncode, child.stdout.splitlines()


def test_nothing_answered_is_lost_and_nothing_is_settled_twice(tmp_path):
    code, said = run_child(tmp_path / "whole.db", 0)
    assert code == 0
    statements = int(said[-1].removeprefix("statements "))
    assert statements > 50

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda n: killed_at(tmp_path / f"{n}.db", n), range(1, statements + 1)))

    assert {code for code, _, _ in ends} == {-signal.SIGKILL}
    for path, said in [(path, said) for _, path, said in ends]:
        keeps_what_it_said(path, said)
    assert sum("accepted" in said for _, _, said in ends) not in (0, len(ends))


def killed_at(path: Path, fatal: int) -> tuple[int, Path, list[str]]:
    code, said = run_child(path, fatal)
    return code, path, said


def keeps_what_it_said(path: Path, said: list[str]) -> None:
    clock = [time.time() + 3600]  # every lease has run out
    store = SQLiteStore(path, clock=lambda: clock[0], durable=False)
    store.migrate()
    before = {job.id: job.state for job in store.find(Filter()).jobs}
    assert len(before) in (0, len(TASKS)), "all jobs of an event are accepted, or none"
    if "accepted" in said:
        assert len(before) == len(TASKS)
        assert store.event("shop", "e1") is not None
    for id in [id for line in said if line.startswith("settled") for id in line.split()[1:]]:
        assert before[id] is State.DONE, f"{id} was settled, and is {before[id]}"

    work_off(store, clock)
    for id in before:
        job = store.get(id)
        assert job is not None
        assert job.state is State.DONE
        assert [line.event for line in job.history].count(Event.FINISH) == 1
    assert store.backlog().done == store.backlog().accepted == len(before)
    store.close()


def work_off(store: SQLiteStore, clock: list[float]) -> None:
    store.enlist(8, "healer", 1e9)
    for _ in range(4 * len(TASKS)):
        clock[0] += 60
        store.upkeep(AFTER_LAPSE)
        for alone in (False, True):
            claims = store.claim(Wanted(8, 10, 10, frozenset(TASKS), alone=alone), Pacer({})).claims
            ends = [conclude(one, Outcome(Kind.OK, acted=True), Rules(), clock[0], 0.5) for one in claims]
            assert store.settle(ends) == ()
