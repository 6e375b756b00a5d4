"""Who puts jobs, who presses buttons, and who tidies up in the end."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.sim import history
from tests.sim.scenario import KEYED, NARROW, RATED
from treppe.config import DAY
from treppe.errors import StoreError
from treppe.job import Claim, Event, Job, Kind, NewEvent, NewJob, Repeat, Settlement, State
from treppe.policy.pace import decode, encode, pause, resume
from treppe.store.protocol import Filter, Seen

if TYPE_CHECKING:
    from tests.sim.world import World

ACTS = {
    State.WAITING: (Event.CANCEL,),
    State.RUNNING: (Event.ASK_CANCEL, Event.ASK_CANCEL, Event.CANCEL, Event.CONFIRM),
    State.UNCLEAR: (Event.CONFIRM, Event.REVIVE, Event.REVIVE, Event.BURY, Event.CANCEL),
    State.DEAD: (Event.REVIVE, Event.REVIVE, Event.CONFIRM, Event.CANCEL),
    State.HANDED_OVER: (Event.CONFIRM, Event.CANCEL),
    State.DONE: (Event.REVIVE, Event.CANCEL),
    State.CANCELLED: (Event.REVIVE,),
}
"""What people try, also what must be refused."""


class Producer:
    """Puts jobs, one by one, in batches, with events, within transactions, some of them twice."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.random = world, name, world.random
        self.link = world.link(world.process(name))
        self.n = 0
        self.old: list[tuple[tuple[NewJob, ...], tuple[NewEvent, ...]]] = []

    def begin(self) -> None:
        self.world.kernel.spawn(self.link._process, self._produce, self.name)

    def _produce(self) -> None:
        scenario = self.world.scenario
        for _ in range(scenario.puts):
            self.world.kernel.sleep(self.random.random() * 1.6 * scenario.active / scenario.puts)
            roll = self.random.random()
            if roll < 0.15 and self.old:
                self._put_again()
            elif roll < 0.3 and self.world.place.can_within:
                self._put_within()
            elif roll < 0.5:
                self._put_event()
            else:
                self._put(tuple(self._job() for _ in range(self.random.choice((1, 1, 2, 5)))), ())

    def _job(self, **fields: Any) -> NewJob:
        random, world = self.random, self.world
        self.n += 1
        id = fields.pop("id", f"{self.name}:{self.n}")
        world.ids.append(id)
        task, queue = random.choice(list(world.tasks.items()))
        keyed = queue is KEYED or random.random() < 0.1
        short = world.scenario.short_lives and random.random() < 0.3
        self._decide_fate(id, task)
        return NewJob(
            id, task, queue, payload=b"{}", key=random.choice("abc") if keyed else None,
            priority=random.choice((0, 0, 10, -5)), repeat=self._repeat(queue), attempts=random.choice((2, 5)),
            crashes=random.choice((1, 3)), delay=random.choice((0.0, 0.0, 0.0, 2.0, 15.0)),
            expires=random.choice((5.0, 20.0)) if short else 14 * DAY,
            keep=random.choice((10.0, 30.0)) if short else 30 * DAY,
            deadline=random.choice((None, 5.0)), skip_dead=random.random() < 0.2, **fields,
        )  # fmt: skip

    def _repeat(self, queue: str) -> Repeat:
        ask = {NARROW: 0.7, RATED: 0.3}.get(queue, 0.1)
        return Repeat.ASK if self.random.random() < ask else Repeat.SAFE

    def _decide_fate(self, id: str, task: str) -> None:
        target, roll = self.world.targets[task], self.random.random()
        if self.world.healed:
            return
        for some, share in ((target.broken, 0.03), (target.refused, 0.03), (target.hand_over, 0.05)):
            if roll < share:
                some.add(id)
                return
            roll -= share
        if roll < self.world.scenario.poison:
            self.world.poison.add(id)

    def _put_again(self) -> None:
        """The same once more, or the same id with other content."""
        jobs, events = self.random.choice(self.old)
        if self.random.random() < 0.3 and not events:
            jobs = tuple(NewJob(job.id, job.task, job.queue, payload=b'{"other": 1}') for job in jobs)
        self._put(jobs, events)

    def _put_event(self) -> None:
        event = NewEvent("shop", f"{self.name}-event-{self.n}", b'{"order": 1}')
        jobs = tuple(
            self._job(id=f"{event.id}:{n}", event=("shop", event.id)) for n in range(self.random.choice((1, 2)))
        )
        jobs = tuple(
            NewJob(**{name: getattr(job, name) for name in job.__struct_fields__} | {"payload": b""}) for job in jobs
        )
        self._put(jobs, (event,))

    def _put(self, jobs: tuple[NewJob, ...], events: tuple[NewEvent, ...]) -> None:
        """Put, and after an error put the same again; some give up."""
        self.old.append((jobs, events))
        for _ in range(self.random.choice((1, 3, 8))):
            with suppress(StoreError):
                self.link.put(jobs, events)
                return
            self.world.kernel.sleep(0.2 + self.random.random())

    def _put_within(self) -> None:
        world = self.world
        jobs = tuple(self._job() for _ in range(self.random.choice((1, 2))))
        ending = self.random.choice(("commit", "commit", "rollback", "savepoint", "lost"))
        world.kernel.sleep(world.faults.latency())
        world.entries.append(history.Tried(jobs))
        with world.place.connect() as connection:
            if ending == "savepoint":
                connection.execute("SAVEPOINT theirs")
            answer = _planned(world.store.plan(jobs), connection)
            if ending == "savepoint":
                connection.execute("ROLLBACK TO SAVEPOINT theirs")
            if ending in ("commit", "savepoint"):
                connection.commit()
            elif ending == "rollback":
                connection.rollback()
        self.link.operations += 1
        if ending == "commit":
            world.entries.append(history.Stored(world.clock(), jobs, (), answer, True))
            world.changed.pulse()
        else:
            world.entries.append(history.RolledBack(jobs))


def _planned(plan: Any, connection: Any) -> Any:
    """Run a plan on the caller's connection."""
    try:
        sql, parameters = next(plan)
        while True:
            rows = connection.execute(sql, parameters)
            sql, parameters = plan.send(list(rows.fetchall() if rows.description else ()))
    except StopIteration as end:
        return end.value


class Person:
    """Looks at jobs and presses buttons, sometimes long after the look; pauses queues and resumes them."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.random = world, name, world.random
        self.link = world.link(world.process(name))

    def begin(self) -> None:
        self.world.kernel.spawn(self.link._process, self._live, self.name)

    def _live(self) -> None:
        world = self.world
        while not world.healed:
            world.kernel.sleep(self.random.random() * 2 * world.scenario.people)
            if world.ids and not world.healed:
                with suppress(StoreError):
                    self._do_something()

    def _do_something(self) -> None:
        roll = self.random.random()
        if roll < 0.06:
            self._pause_or_resume()
        elif roll < 0.2:
            self.link.backlog()
        else:
            self._press_a_button()

    def _press_a_button(self) -> None:
        id = self.random.choice(self.world.ids[-40:])
        job = self.link.get(id)
        if job is None or (job.state is State.WAITING and self.random.random() < 0.7):
            return
        event = self.random.choice(ACTS[job.state])
        self.world.kernel.sleep(self.random.choice((0.0, 0.01, 0.2, 3.0)))
        self.link.change([Seen(id, job.token)], event, self.name, "by hand")

    def _pause_or_resume(self) -> None:
        queue = self.random.choice((RATED, NARROW, KEYED))
        name = f"flow:{queue}"
        value = self.link.journal.get(name)
        flow, now = decode(value), self.world.clock()
        wanted = resume(flow, now) if flow.paused else pause(flow, self.name, now)
        self.link.journal.swap(name, value, encode(wanted) or None)


class Remote:
    """The other side of what was handed over: it confirms when it is done, sometimes before our own settle is written.

    It carries the token that it was given, and tries again when it is not heard.
    """

    def __init__(self, world: World) -> None:
        self.world, self.random = world, world.random
        self.link = world.link(world.process("remote"))

    def begin(self, claim: Claim) -> None:
        """It has got the job of this claim."""
        if self.random.random() < 0.7:
            self.world.kernel.spawn(self.link._process, lambda: self._confirm(claim), "confirms")

    def _confirm(self, claim: Claim) -> None:
        self.world.kernel.sleep(self.random.choice((0.0, 0.01, 1.0, 10.0, 40.0)))
        for _ in range(5):
            with suppress(StoreError):
                self.link.settle([Settlement(claim, Event.CONFIRM, Kind.ACT, counts=False)])
                return
            self.world.kernel.sleep(1.0)


class Janitor:
    """After the healing: resumes what is paused, and answers for every job that waits for a human."""

    def __init__(self, world: World) -> None:
        self.world, self.random = world, world.random
        self.store = world.store
        self.revived: set[str] = set()

    def begin(self) -> None:
        self.world.kernel.spawn(self.world.process("janitor"), self._tidy_up, "janitor")

    def _tidy_up(self) -> None:
        world, kernel = self.world, self.world.kernel
        started = kernel.now
        late_at = max(world.peak, world.clock()) + 2 * self.store.lease + 10.0
        looked = False
        while not world.drained:
            kernel.sleep(1.0)
            self._resume_all()
            if not looked and world.clock() >= late_at:
                world.note_who_runs_late()
                looked = True
            if kernel.now - started > 20.0:
                self._answer_all()
            backlog = self.store.backlog()
            if looked and backlog.open == 0 and backlog.total("dead") == 0:
                world.drained_in_time = world.drained = True

    def _resume_all(self) -> None:
        for name, value in self.store.journal.scan("flow:").items():
            flow = decode(value)
            if flow.paused:
                self.store.journal.swap(name, value, encode(resume(flow, self.world.clock())) or None)

    def _answer_all(self) -> None:
        for state in (State.UNCLEAR, State.DEAD, State.HANDED_OVER):
            for job in self.store.find(Filter(states=(state,)), None, 500).jobs:
                self._answer(job)

    def _answer(self, job: Job) -> None:
        acts = [event for event in ACTS[job.state] if event is not Event.BURY]
        event = self.random.choice(acts)
        if event is Event.REVIVE and job.id in self.revived:
            event = Event.CONFIRM
        self.revived.add(job.id)
        seen = Seen(job.id, job.token)
        refused = self.store.change([seen], event, "janitor", "in the end")
        self.world.entries.append(history.Acted(self.world.clock(), seen, event, bool(refused)))
        self.world.changed.pulse()
