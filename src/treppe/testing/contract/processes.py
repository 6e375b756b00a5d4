"""Processes: real ones, several at a time, and killed in the middle."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from treppe.job import State
from treppe.store.protocol import Store
from treppe.testing.contract.base import Clock, Contract, Opener, as_long_as
from treppe.testing.contract.child import Order
from treppe.testing.contract.verbs import claim, find_all, finish, put, put_many, state, upkeep

Child = subprocess.Popen[str]
Start = Callable[[Order], Child]
MINUTES = 60.0


class Processes(Contract):
    """kill -9, and many workers."""

    @pytest.fixture
    def elsewhere(self, tmp_path: Path) -> Opener:
        """How a child opens the store."""
        opener = self.opener(tmp_path)
        if opener is None:
            pytest.skip("opener() says that only one process may open this store")
        return opener

    @pytest.fixture
    def real(self, open_store: Callable[..., Store]) -> Store:
        """The store by the real clock, as the children see it."""
        return open_store(time.time)

    @pytest.mark.parametrize("batch", [1, 3])
    def test_every_put_that_was_acknowledged_survives_a_kill(self, real: Store, elsewhere: Opener, batch: int) -> None:
        with child(Order(elsewhere, "put_for_ever", "victim", batch)) as victim:
            acknowledged = [int(line(victim)) for _ in range(30)]
            victim.kill()
            acknowledged += [int(rest) for rest in lines(victim) if rest.strip().isdigit()]
        there = Counter(int(job.id.split("-")[1]) for job in find_all(real))
        assert set(acknowledged) <= set(there)
        assert set(there.values()) == {batch}, "a batch is there in parts"
        assert len(there) - len(acknowledged) <= 1

    def test_a_put_repeated_after_a_kill_adds_nothing(self, real: Store, elsewhere: Opener) -> None:
        with child(Order(elsewhere, "put_for_ever", "victim", 1)) as victim:
            for _ in range(10):
                line(victim)
            victim.kill()
        before = len(find_all(real))
        again = put(real, *[f"victim-{i}-0" for i in range(10)], payload=b"x" * 100)
        assert all(one.duplicate and not one.conflict for one in again)
        assert len(find_all(real)) == before

    def test_three_processes_do_every_job_exactly_once(self, real: Store, elsewhere: Opener) -> None:
        ids = put_many(real, 600)
        orders = [Order(elsewhere, "work_until_empty", f"worker {i}", 5) for i in range(3)]
        with child(orders[0]) as first, child(orders[1]) as second, child(orders[2]) as third:
            told = [*lines(first), *lines(second), *lines(third)]
        assert Counter(told) == Counter(f"done {id}" for id in ids)
        assert real.backlog().done == 600

    def test_processes_keep_the_order_of_every_key(self, real: Store, elsewhere: Opener) -> None:
        for i in range(20):
            put(real, *[f"{key}-{i}" for key in "xyz"], key="k")
        order = Order(elsewhere, "work_until_empty", n=5)
        for _ in as_long_as(lambda: real.backlog().open):
            with child(order) as first, child(order) as second:
                lines(first)
                lines(second)
        ends = sorted(find_all(real), key=lambda job: job.ended_at or 0.0)
        assert [job.seq for job in ends] == sorted(job.seq for job in ends)

    def test_the_jobs_of_a_killed_worker_come_back_after_its_lease(
        self, real: Store, elsewhere: Opener, open_store: Callable[..., Store]
    ) -> None:
        put_many(real, 3)
        with child(Order(elsewhere, "claim_and_hang", "victim", 3)) as victim:
            held = {line(victim) for _ in range(3)}
            victim.kill()
        assert held == {f"job-{i}" for i in range(3)}
        upkeep(real)
        assert {state(real, id) for id in held} == {State.RUNNING}
        later = open_store(later_by(MINUTES))
        assert upkeep(later).lapsed == 3
        later.enlist(1, "alice", 1e6)
        for _ in range(3):
            finish(later, *claim(later, alone=True).claims)
        assert {state(later, id) for id in held} == {State.DONE}


def later_by(seconds: float) -> Clock:
    """The real clock of a while from now."""
    return lambda: time.time() + seconds


@contextmanager
def child(order: Order) -> Iterator[Child]:
    """A process that carries the order out; it is gone in the end."""
    command = [sys.executable, "-c", "from treppe.testing.contract.child import main; main()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(order).decode() + "\n")
        process.stdin.flush()
        try:
            yield process
        finally:
            process.kill()


def line(child: Child) -> str:
    """The next thing the child says; fails when it has died."""
    assert child.stdout is not None
    said = child.stdout.readline()
    assert said, "the child process has ended early"
    return said.strip()


def lines(child: Child) -> list[str]:
    """All that the child still says until it ends."""
    assert child.stdout is not None
    return [said.strip() for said in child.stdout]
