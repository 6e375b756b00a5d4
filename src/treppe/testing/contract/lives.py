"""Random lives: hundreds of random steps, and after each the promises are looked at."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from treppe.job import Claim, Event, Job, Repeat, State
from treppe.store.protocol import Filter, Store
from treppe.testing.clock import ManualClock
from treppe.testing.contract.base import Contract, until
from treppe.testing.contract.figures import assert_figures_equal_the_rows
from treppe.testing.contract.paces import ScriptedPace, as_many_as_free
from treppe.testing.contract.verbs import (
    SETTLEMENTS,
    act,
    claim,
    find_all,
    finished,
    job,
    new_worker,
    state,
    upkeep,
)

TASKS, QUEUES, KEYS, SLOTS = ("app.one", "app.two"), ("free", "limited"), ("k", "l", "m", None), 2
OPEN = (State.WAITING, State.RUNNING, State.HANDED_OVER, State.UNCLEAR)


class Life:
    """A small world: a clock, some workers, jobs with few keys, and people who press buttons."""

    def __init__(self, store: Store, clock: ManualClock, seed: int) -> None:
        self.store, self.clock, self.roll = store, clock, random.Random(seed)
        self.pace = ScriptedPace({"limited": as_many_as_free(SLOTS)})
        self.held: list[Claim] = []
        self.put = 0
        self.tokens: Counter[str] = Counter()

    def step(self) -> None:
        """One random thing happens."""
        steps = (self.enqueue, self.work, self.work, self.settle, self.settle, self.die, self.press, self.wait)
        self.roll.choice(steps)()

    def enqueue(self) -> None:
        """Some jobs arrive."""
        jobs = []
        for _ in range(self.roll.randint(1, 4)):
            self.put += 1
            jobs.append(
                job(
                    f"job-{self.put}",
                    task=self.roll.choice(TASKS),
                    queue=self.roll.choice(QUEUES),
                    key=self.roll.choice(KEYS),
                    priority=self.roll.choice((-1, 0, 1, 50)),
                    repeat=self.roll.choice((Repeat.SAFE, Repeat.SAFE, Repeat.ASK)),
                    delay=self.roll.choice((0, 0, 0, 5, 60)),
                    expires=self.roll.choice((1e6, 1e6, 1e6, 45)),
                    skip_dead=self.roll.random() < 0.3,
                    crashes=2,
                )
            )
        self.store.put(jobs)

    def work(self) -> None:
        """A worker claims, and nothing it gets is out of order."""
        alone, tasks = self.roll.random() < 0.3, self.roll.choice((TASKS, TASKS, TASKS[:1]))
        ahead = {one.id: self.line_before(one) for one in self.waiting()}
        taken = self.claim(self.roll.randint(1, 5), tasks, self.roll.randint(0, 5), alone)
        for one in taken:
            assert ahead[one.id] == [], f"{one.id} was claimed before {ahead[one.id]}"
            assert one.suspect is alone
            assert one.token > self.tokens[one.id]
            self.tokens[one.id] = one.token
        self.held += taken

    def claim(self, n: int, tasks: tuple[str, ...] = TASKS, free: int = 5, alone: bool = False) -> tuple[Claim, ...]:
        """A claim by a worker of its own."""
        worker = new_worker(self.store, 1e6)
        return claim(self.store, n, worker=worker, pace=self.pace, tasks=tasks, free=free, alone=alone).claims

    def settle(self) -> None:
        """A worker is done with one of its jobs, in some way."""
        if self.held:
            one = self.held.pop(self.roll.randrange(len(self.held)))
            late = state(self.store, one.id) is not State.RUNNING
            end = self.roll.choice([end for end in SETTLEMENTS if not (late and end is Event.HAND_OVER)])
            self.store.settle([SETTLEMENTS[end](one, delay=self.roll.choice((0, 0, 30)), confirm_within=100)])

    def die(self) -> None:
        """A worker dies; it may still settle late."""
        if self.held:
            self.store.retire(self.roll.choice(self.held).worker)
            upkeep(self.store)

    def press(self) -> None:
        """Somebody presses a button, allowed or not."""
        jobs = find_all(self.store)
        if jobs:
            one, event = self.roll.choice(jobs), self.roll.choice((Event.CANCEL, Event.REVIVE, Event.CONFIRM))
            if not (event is Event.REVIVE and self.skips(one)):
                act(self.store, event, one.id)

    def wait(self) -> None:
        """Time passes."""
        self.clock.advance(self.roll.choice((1, 7, 40)))
        upkeep(self.store)

    def skips(self, one: Job) -> bool:
        """A dead job that let go of its key has lost its place in the line; where it goes then is not promised."""
        return one.state is State.DEAD and one.key is not None

    def waiting(self) -> list[Job]:
        """What might be claimed."""
        return find_all(self.store, Filter((State.WAITING,)))

    def line_before(self, one: Job) -> list[str]:
        """Who stands before this job in the line of its key."""
        if one.key is None:
            return []
        line = find_all(self.store, Filter(OPEN, one.queue, key=one.key))
        due = [other for other in line if other.due_at <= self.clock()]
        return [other.id for other in due if (other.due_at, other.seq) < (one.due_at, one.seq)]

    def look(self) -> None:
        """Everything that must hold at every moment."""
        jobs = find_all(self.store)
        assert len(jobs) == self.put == self.store.backlog().accepted
        running = [one for one in jobs if one.state is State.RUNNING]
        keys = Counter((one.queue, one.key) for one in running if one.key is not None)
        assert max(keys.values(), default=1) == 1, f"two of one key run: {keys}"
        flying = [one for one in jobs if one.queue == "limited" and one.state in (State.RUNNING, State.HANDED_OVER)]
        assert len(flying) <= SLOTS
        assert self.store.backlog().done == sum(one.state is State.DONE for one in jobs)
        assert_figures_equal_the_rows(self.store, self.clock())

    def heal(self) -> None:
        """No more faults: everybody settles, people decide, and all that waits is done in the end."""
        self.store.settle([finished(held) for held in self.held])
        until(self.drain)

    def drain(self) -> bool:
        """One round of deciding and working; true when nothing is left."""
        for one in find_all(self.store, Filter((State.UNCLEAR, State.HANDED_OVER, State.DEAD))):
            assert act(self.store, Event.CANCEL, one.id) == ()
        self.clock.advance(60)
        upkeep(self.store)
        for alone in (False, True):
            self.store.settle([finished(one) for one in self.claim(5, alone=alone)])
        told = self.store.backlog()
        return told.open + told.total("dead") == 0


class Lives(Contract):
    """Whole stories instead of single steps."""

    @pytest.mark.parametrize("seed", range(8))
    def test_in_a_random_life_every_promise_holds_and_nobody_is_left_behind(
        self, store: Store, clock: ManualClock, seed: int
    ) -> None:
        life = Life(store, clock, seed)
        for _ in range(150):
            life.step()
            life.look()
        life.heal()
        assert {state(store, f"job-{i + 1}") for i in range(life.put)} <= {State.DONE, State.CANCELLED}
