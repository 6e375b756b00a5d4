"""One world: real workers over a real store, people, producers and remote sides, in virtual time, from one seed.

For a while things go wrong; then everything is healed, what is left is worked off, and the checker looks at what was
told and at what is in the store.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from tests.sim import history
from tests.sim.faults import Faults
from tests.sim.kernel import Kernel, Process, Signal
from tests.sim.link import Link
from tests.sim.nemesis import Nemesis
from tests.sim.people import Janitor, Person, Producer, Remote
from tests.sim.places import Place
from tests.sim.scenario import FREE, KEYED, NARROW, RATED, Scenario
from tests.sim.standins import installed
from tests.sim.target import PATIENCE, Target
from treppe.config import Backoff
from treppe.errors import StoreError
from treppe.job import START_MARK, Kind, Outcome, State
from treppe.policy.pace import Pacer
from treppe.settle import Rules
from treppe.store.protocol import Filter
from treppe.upkeep import Upkeep
from treppe.worker import Handler, Run, Worker

EPOCH = 1_700_000_000.0
DRAINS_WITHIN = 2400.0
TASKS = {"destination:crm": RATED, "destination:bank": NARROW, "app.mail": FREE, "app.sync": KEYED}
RULES = Rules(backoff=Backoff(base=1.0, factor=2.0, cap=20.0), confirm_within=30.0)


class World:
    """Make it, :meth:`run` it, give ``entries`` and ``final`` to the checker."""

    def __init__(self, scenario: Scenario, place: Place) -> None:
        self.scenario, self.place = scenario, place
        self.kernel = Kernel(scenario.seed)
        self.random = self.kernel.random
        self.clock_off = 0.0
        self.peak = 0.0  # the highest time that the clock ever showed before it was set back
        self.entries: list[Any] = []
        self.faults = Faults(self.random, scenario.strength)
        self.changed = Signal(self.kernel)
        self.pacer = Pacer(scenario.limits)
        self.tasks = TASKS
        self.targets = self._targets()
        self.poison: set[str] = set()
        self.ids: list[str] = []  # of every job that anybody tried to put
        self.working: dict[str, tuple[Process, Worker]] = {}
        self.links: list[Link] = []
        self.healed = False
        self.drained = False
        self.drained_in_time = False
        self.running_late: tuple[Any, ...] = ()
        self.processes: list[Process] = []

    def clock(self) -> float:
        """The store's clock."""
        return EPOCH + self.clock_off + self.kernel.now

    def run(self) -> history.Final:
        """From the first put to the end; what the store holds then."""
        self.place.fresh()
        with installed(self.kernel), _silence():
            self.store = self.place.open(self.clock)
            self._populate()
            self.kernel.run(self.scenario.active)
            self._heal()
            self.kernel.run(self.kernel.now + DRAINS_WITHIN, lambda: self.drained)
            self._stop()
            final = self._final()
            for process in self.processes:
                self.kernel.kill(process)
            self.kernel.run(self.kernel.now + 1.0)
        return final

    @property
    def operations(self) -> int:
        """Calls of the store, calls of remote sides, and faults."""
        calls = sum(link.operations for link in self.links) + sum(target.calls for target in self.targets.values())
        return calls + sum(self.faults.counts.values())

    def digest(self) -> str:
        """The same for two runs that were the same to the last step."""
        told = "\n".join(map(repr, self.entries))
        return hashlib.sha256(f"{self.kernel.steps} {told}".encode()).hexdigest()[:16]

    def process(self, name: str, mortal: bool = False) -> Process:
        process = Process(name, mortal)
        self.processes.append(process)
        return process

    def link(self, process: Process) -> Link:
        """The store as a process that was just started sees it."""
        store = self.place.open(self.clock)
        link = Link(store, process, self.kernel, self.faults, self.entries, self.changed)
        self.links.append(link)
        return link

    def _targets(self) -> dict[str, Target]:
        most = self.scenario.target_most
        return {
            task: Target(task.split(":")[-1], self.kernel, self.entries, most if queue is RATED else None)
            for task, queue in TASKS.items()
        }

    def _populate(self) -> None:
        scenario = self.scenario
        for n in range(scenario.workers):
            self._look_after_worker(n, drains=scenario.drains and n == 0)
        for n in range(scenario.producers):
            Producer(self, f"producer-{n}").begin()
        for name in ("anna", "bert"):
            Person(self, name).begin()
        if scenario.confirms:
            remote = Remote(self)
            for target in self.targets.values():
                target.on_hand_over = remote.begin
        Nemesis(self).begin()

    # Workers

    def _look_after_worker(self, n: int, drains: bool) -> None:
        supervisor = self.process(f"supervisor-{n}")

        def keep_running() -> None:
            incarnation = 0
            while not self.drained:
                incarnation += 1
                self._one_life(f"worker-{n}.{incarnation}", drains)
                self.kernel.sleep(0.1 + self.random.random() * 2)

        self.kernel.spawn(supervisor, keep_running, "supervisor")

    def _one_life(self, name: str, drains: bool) -> None:
        """Start a worker process, and wait until it ends or is killed."""
        kernel, process = self.kernel, self.process(name, mortal=True)
        ended = Signal(kernel)
        self.entries.append(history.Born(kernel.now, name))
        link = self.link(process)
        upkeep = Upkeep(link, lambda: kernel.now)

        def live() -> None:
            try:
                worker = Worker(
                    link, self._handlers(), self.pacer, threads=self.scenario.threads, grace=5.0, chores=upkeep.turn,
                    on_trouble=upkeep.trouble,
                )  # fmt: skip
                self.working[name] = process, worker
                with suppress(StoreError):
                    if drains:
                        self._drain(worker, link, upkeep)
                    else:
                        worker.run()
            finally:
                self.working.pop(name, None)
                ended.set()

        kernel.spawn(process, live, "main")
        ended.wait()
        if process.alive:
            kernel.kill(process)
        link.close()
        self.entries.append(history.Died(kernel.now, name))

    def _drain(self, worker: Worker, link: Link, upkeep: Upkeep) -> None:
        """As ``treppe drain --budget 25s``: what a dead worker held is waited for, if nobody stays who would."""
        worker.drain(25.0)
        if link.backlog().total("running"):
            self.kernel.sleep(upkeep.patience)
            while upkeep.round().more:
                pass

    def _handlers(self) -> dict[str, Handler]:
        return {task: Handler(self._handle, RULES, None if task == "app.mail" else PATIENCE + 2.0) for task in TASKS}

    def _handle(self, run: Run) -> Outcome:
        claim, kernel = run.claim, self.kernel
        self.entries.append(history.Began(self.clock(), kernel.now, claim))
        if claim.id in self.poison:
            self._die_of(claim.id)
        if claim.task == "app.mail" and self.random.random() < 0.1:
            with suppress(StoreError):
                run.note(f"{START_MARK}mail", b"1")
        if claim.task == "app.mail" and self.random.random() < 0.02:
            kernel.sleep(25.0)  # longer than a lease, and no fault
        if self.random.random() < 0.01:
            return Outcome(Kind.SNOOZED, after=self.random.choice((0.5, 3.0)), acted=False)
        outcome = self.targets[claim.task].call(claim)
        if self.random.random() < 0.005:
            raise RuntimeError("a fault of the handler")
        return outcome

    def _die_of(self, id: str) -> None:
        self.faults.count("poison")
        assert self.kernel.strand is not None
        self.kernel.kill(self.kernel.strand.process)

    # The end

    def _heal(self) -> None:
        self.healed = True
        self.faults.heal()
        self.poison.clear()
        for target in self.targets.values():
            target.heal()
        for process in self.processes:
            process.stopped_until = min(process.stopped_until, self.kernel.now)
        self.entries.append(history.Healed(self.clock(), self.kernel.now))
        Janitor(self).begin()

    def note_who_runs_late(self) -> None:
        """Two leases after the healing, by the store's clock: what runs still, and which workers live."""
        alive = {worker._lease.worker for _, worker in self.working.values()}
        page = self.store.find(Filter(states=(State.RUNNING,)), None, 500)
        self.running_late = (frozenset(alive), tuple((job.seq, job.token, job.id) for job in page.jobs))

    def _stop(self) -> None:
        self.drained = True
        for _, worker in list(self.working.values()):
            worker._stopping.set()
        self.kernel.run(self.kernel.now + 60.0)

    def _final(self) -> history.Final:
        store, jobs, after = self.store, [], None
        while True:
            page = store.find(Filter(), after, 500)
            jobs += page.jobs
            if (after := page.after) is None:
                break
        audit = [msgspec.json.decode(record.record) for record in store.journal.page("audit", 0, 1000)]
        by_id = {id: store.get(id) for id in dict.fromkeys(self.ids)}
        return history.Final(
            self.clock(), by_id, tuple(jobs), store.backlog(), tuple(audit), self.drained_in_time, self.running_late
        )


@contextmanager
def _silence() -> Iterator[None]:
    """Workers warn of every trouble they meet; here that is thousands a second."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
