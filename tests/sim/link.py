"""A process's link to the store: every call takes time and has three ends: ok, failed before, done but unknown.

What was really done is written into the history, whether the caller hears of it or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from tests.sim import history
from tests.sim.faults import End, Faults
from tests.sim.kernel import Kernel, Process, Signal
from treppe.errors import StoreUnavailable
from treppe.job import Claim, Event, NewEvent, NewJob, Settlement
from treppe.store.protocol import AfterLapse, Backlog, Claimed, Filter, Pace, Page, Put, Seen, Upkept, Wanted

T = TypeVar("T")


class Link:
    """Satisfies :class:`treppe.store.protocol.Store` for one process of a world."""

    def __init__(
        self, store: Any, process: Process, kernel: Kernel, faults: Faults, entries: list[Any], changed: Signal
    ) -> None:
        self.can, self.lease, self.now = store.can, store.lease, store.now
        self.journal = SimpleNamespace(
            get=lambda name: self._call("get", lambda: store.journal.get(name)),
            swap=lambda name, old, new: self._call("swap", lambda: store.journal.swap(name, old, new)),
        )
        self.operations = 0
        self._store, self._process = store, process
        self._kernel, self._faults, self._entries, self._changed = kernel, faults, entries, changed
        self._between_transactions = False
        self._put_gaps_between_transactions()

    def put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put:
        def work() -> Put:
            self._entries.append(history.Tried(tuple(jobs)))
            return self._store.put(jobs, events)

        def told(answer: Put, heard: bool) -> None:
            self._entries.append(history.Stored(self.now(), tuple(jobs), tuple(events), answer, heard))
            self._changed.pulse()

        return self._call("put", work, told, may_be_later=True)

    def enlist(self, worker: int, name: str, lease: float) -> None:
        def told(answer: object, heard: bool) -> None:
            self._entries.append(history.Leased(self.now(), worker, self.now() + lease, True))

        self._call("enlist", lambda: self._store.enlist(worker, name, lease), told)

    def renew(self, worker: int, lease: float) -> bool:
        def told(kept: bool, heard: bool) -> None:
            self._entries.append(history.Leased(self.now(), worker, self.now() + lease, kept))

        return self._call("renew", lambda: self._store.renew(worker, lease), told)

    def retire(self, worker: int) -> None:
        def told(answer: object, heard: bool) -> None:
            self._entries.append(history.Leased(self.now(), worker, 0.0, True))

        self._call("retire", lambda: self._store.retire(worker), told)

    def claim(self, wanted: Wanted, pace: Pace, settlements: Sequence[Settlement] = ()) -> Claimed:
        def told(claimed: Claimed, heard: bool) -> None:
            if settlements:
                self._entries.append(history.Settled(self.now(), tuple(settlements), claimed.refused, heard))
            if claimed.claims:
                now = self._kernel.now
                self._entries.append(history.Claimed(self.now(), now, wanted.worker, claimed.claims, heard))
            if settlements or claimed.claims:
                self._changed.pulse()

        work = lambda: self._store.claim(wanted, pace, settlements)  # noqa: E731
        return self._call("claim", work, told, may_be_later=True)

    def settle(self, settlements: Sequence[Settlement]) -> tuple[Settlement, ...]:
        def told(refused: tuple[Settlement, ...], heard: bool) -> None:
            self._entries.append(history.Settled(self.now(), tuple(settlements), refused, heard))
            self._changed.pulse()

        return self._call("settle", lambda: self._store.settle(settlements), told, may_be_later=True)

    def held(self, worker: int) -> tuple[Claim, ...]:
        return self._call("held", lambda: self._store.held(worker))

    def note(self, claim: Claim, name: str, value: bytes | None) -> bool:
        def told(kept: bool, heard: bool) -> None:
            self._entries.append(history.Noted(claim, kept))

        return self._call("note", lambda: self._store.note(claim, name, value), told)

    def change(self, seen: Sequence[Seen], event: Event, by: str, note: str = "") -> tuple[Seen, ...]:
        def told(refused: tuple[Seen, ...], heard: bool) -> None:
            self._entries.extend(history.Acted(self.now(), one, event, one in refused) for one in seen)
            self._changed.pulse()

        work = lambda: self._store.change(seen, event, by, note)  # noqa: E731
        return self._call("change", work, told, may_be_later=True)

    def upkeep(self, after_lapse: AfterLapse | None) -> Upkept:
        def work() -> Upkept:
            name = self._process.name
            lapses = after_lapse is not None
            self._entries.append(history.Kept(self.now(), self._kernel.now, name, lapses))
            self._between_transactions = True
            done: Upkept | None = None
            try:
                done = self._store.upkeep(after_lapse)
                return done
            finally:
                self._between_transactions = False
                self._entries.append(history.Swept(self.now(), lapses, done))

        return self._call("upkeep", work)

    def get(self, id: str) -> Any:
        return self._call("get", lambda: self._store.get(id))

    def notes(self, id: str) -> Mapping[str, bytes]:
        return self._call("notes", lambda: self._store.notes(id))

    def find(self, wanted: Filter, after: int | None = None, n: int = 50) -> Page:
        return self._call("find", lambda: self._store.find(wanted, after, n))

    def backlog(self) -> Backlog:
        def told(figures: Backlog, heard: bool) -> None:
            dead = figures.total("dead")
            self._entries.append(history.Counted(figures.at, figures.open, figures.accepted, figures.done, dead))

        return self._call("backlog", self._store.backlog, told)

    def wait(self, timeout: float, bell: Any) -> None:
        """Until the bell rings, something changed in the store (mostly), or the time is over."""
        if self._kernel.random.random() < 0.2:
            bell.wait(timeout)
            return
        bell.signal.wait(timeout, self._changed)

    def close(self) -> None:
        """The process is gone, and so are its connections, once what is on its way has arrived."""
        self._kernel.spawn(_NETWORK, self._hang_up, "hang up")

    def _hang_up(self) -> None:
        self._kernel.sleep(20.0)
        self._store.close()

    def _call(
        self,
        name: str,
        work: Callable[[], T],
        told: Callable[[T, bool], None] | None = None,
        may_be_later: bool = False,
    ) -> T:
        kernel, faults = self._kernel, self._faults
        kernel.check_alive()
        self.operations += 1
        kernel.sleep(faults.latency())
        end = faults.end_of(self._process, may_be_later)
        if end is End.FAILED:
            self._fail(name)
        if end is End.CRASH_BEFORE:
            kernel.kill(self._process)
        if end is End.LATER:
            kernel.spawn(_NETWORK, lambda: self._do_later(work, told), name)
            self._fail(name)
        answer = work()
        if told is not None:
            told(answer, end is End.OK)
        if end is End.UNKNOWN:
            self._fail(name)
        if end is End.CRASH_AFTER:
            kernel.kill(self._process)
        kernel.sleep(faults.latency())
        return answer

    def _do_later(self, work: Callable[[], T], told: Callable[[T, bool], None] | None) -> None:
        self._kernel.sleep(self._kernel.random.choice((0.05, 0.5, 3.0, 8.0)))
        answer = work()
        if told is not None:
            told(answer, False)

    def _fail(self, name: str) -> None:
        self._entries.append(history.Trouble(self._kernel.now, self._process.name, name))
        raise StoreUnavailable(f"{name}: the store did not answer")

    def _put_gaps_between_transactions(self) -> None:
        """Upkeep is several transactions: others come between them, and it may be killed or fail there."""
        database = getattr(self._store, "_database", None)
        for name in ("read", "write", "once"):
            if not hasattr(database, name):
                continue
            setattr(database, name, self._with_gap(getattr(type(database), name).__get__(database)))

    def _with_gap(self, transact: Callable[..., T]) -> Callable[..., T]:
        def call(*work: Any) -> T:
            if self._between_transactions:
                self._gap()
            return transact(*work)

        return call

    def _gap(self) -> None:
        mine, self._between_transactions = self._between_transactions, False
        try:
            self.operations += 1
            self._kernel.sleep(self._faults.gap())
            end = self._faults.end_of(self._process, may_be_later=False)
            if end in (End.CRASH_BEFORE, End.CRASH_AFTER):
                self._kernel.kill(self._process)
            if end is not End.OK:
                self._fail("upkeep")
        finally:
            self._between_transactions = mine


_NETWORK = Process("network")
