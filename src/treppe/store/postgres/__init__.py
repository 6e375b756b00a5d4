"""Jobs in a PostgreSQL database, 15 or newer: workers on many machines, and enqueues in your own transactions."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple
from weakref import WeakSet

from treppe.errors import StoreError, StoreUnavailable
from treppe.job import Claim, Event, Job, Kind, NewEvent, NewJob, Repeat, Settlement
from treppe.store.bell import Bell
from treppe.store.postgres import acts, claims, migrating, plans, putting, reading, settling
from treppe.store.postgres.claiming import Claimer
from treppe.store.postgres.connecting import is_pooled, translated
from treppe.store.postgres.database import SQL, Clock, Database, timed
from treppe.store.postgres.journal import PostgresJournal
from treppe.store.postgres.keeping import Keeper
from treppe.store.postgres.listening import ALL, CHANNEL, Herald, Listener
from treppe.store.protocol import (
    MAX_BATCH,
    AfterLapse,
    Backlog,
    Can,
    Claimed,
    Filter,
    Pace,
    Page,
    Plan,
    Put,
    Seen,
    Upkept,
    Wanted,
)
from treppe.store.protocol import Journal as JournalPort
from treppe.store.text import can_be, clean

log = logging.getLogger("treppe.store")

LEASE = 30.0
KEEP_EVENTS = 30 * 86400.0
BARELY_AGAIN = 60.0


class Server(NamedTuple):
    """What a server is and how it is set."""

    version: str
    fsync: str
    synchronous_commit: str
    snapshot_age: float  # seconds since the oldest transaction that holds a snapshot began
    careless: list[str]  # roles that do not wait for the disk when they commit here
    pooled: bool  # a pooler such as PgBouncer is in between
    plans: list[str]  # what is planned in a way that would decay


class _Waiters:
    """Who waits for work in this process."""

    def __init__(self, database: Database) -> None:
        self.pid = os.getpid()
        self.bells: WeakSet[Bell] = WeakSet()
        self.listener = Listener(database)


class PostgresStore:
    """Satisfies :class:`treppe.store.protocol.Store` on the database behind *url*.

    ``clock`` gives the store's time in Unix seconds, for tests; without one it is the database's. At most
    ``connections`` are open at a time, beside three: to settle, to renew leases, and to listen.

    ::

        store = PostgresStore("postgresql://app@db.example/shop")
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        connections: int = 12,
        keep_events: float = KEEP_EVENTS,
    ) -> None:
        self._database = Database(url, clock, connections)
        self.lease = LEASE
        self.can = Can(
            within=True,
            many_machines=True,
            find=True,
            survives_power_loss=True,
            durability="every answer waits for the server's commit (its own synchronous_commit)",
        )
        self.journal: JournalPort = PostgresJournal(self._database)
        self._claimer = Claimer(self._database)
        self._keeper = Keeper(self._database, keep_events)
        self._herald = Herald()
        self._waiters = _Waiters(self._database)
        self._rung = self._looked = 0  # changes made or heard in this process, and how many the last claim has seen

    @property
    def url(self) -> str:
        """The database, as it was given."""
        return self._database.url

    def server(self) -> Server:
        """What the server is set to, for ``treppe doctor``."""
        connection = self._database.connect()
        with connection, translated(self.url):
            ((version, fsync, commit, age, careless),) = connection.execute(SQL["server"]).fetchall()
            pooled = is_pooled(connection)
        return Server(version, fsync, commit, age, careless, pooled, plans.check(self._database))

    def now(self) -> float:
        """The database's clock."""
        return self._database.now()

    def put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put:
        """See :meth:`treppe.store.protocol.Store.put`."""
        if not jobs and not events:
            return Put(())
        placed = putting.put(self._database, jobs, events, self._herald.word(jobs))
        self._ring()
        return placed

    def try_put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put | None:
        """See :meth:`treppe.store.protocol.Store.try_put`: there is a network between, and others write too."""
        return None

    def plan(self, jobs: Sequence[NewJob]) -> Plan:
        """See :meth:`treppe.store.protocol.Store.plan`."""
        plan = putting.plan(jobs, self._herald.word_of_others(jobs))
        rows = None
        while True:
            try:
                sql, params = next(plan) if rows is None else plan.send(rows)
            except StopIteration as end:
                answer: Put = end.value
                return answer
            rows = yield timed(sql, self._database.clock), params

    def enlist(self, worker: int, name: str, lease: float) -> None:
        """See :meth:`treppe.store.protocol.Store.enlist`."""
        self._database.once_apart(SQL["worker_enlist"], (worker, clean(name), float(lease)))

    def renew(self, worker: int, lease: float) -> bool:
        """See :meth:`treppe.store.protocol.Store.renew`."""
        self._take_in()
        return bool(self._database.once_apart(SQL["worker_renew"], (worker, float(lease))))

    def retire(self, worker: int) -> None:
        """See :meth:`treppe.store.protocol.Store.retire`."""
        self._here().listener.close()
        self._ring()  # whoever still waits in this process listens anew
        self._database.once_apart(SQL["worker_retire"], (worker,))

    def claim(self, wanted: Wanted, pace: Pace, settlements: Sequence[Settlement] = ()) -> Claimed:
        """See :meth:`treppe.store.protocol.Store.claim`."""
        self._take_in()
        told, self._looked = self._rung != self._looked, self._rung
        claimed = self._claimer.claim(wanted, pace, settlements, told=told)
        if claimed.claims:
            self._here().listener.stir()
        return claimed

    def settle(self, settlements: Sequence[Settlement]) -> tuple[Settlement, ...]:
        """See :meth:`treppe.store.protocol.Store.settle`."""
        if not settlements:
            return ()
        try:
            return tuple(self._database.write_apart(lambda tx: settling.settle(tx, settlements)))
        except StoreUnavailable:
            raise
        except (StoreError, TypeError, ValueError) as error:
            if len(settlements) == 1:
                return self._settle_barely(settlements[0], error)
            half = len(settlements) // 2
            return self.settle(settlements[:half]) + self.settle(settlements[half:])

    def _settle_barely(self, one: Settlement, error: Exception) -> tuple[Settlement, ...]:
        """An end that cannot be written must not leave its job running for ever."""
        log.error('the end of job "%s" cannot be written: %s', one.claim.id, error)
        event = Event.DEFER if one.claim.repeat is Repeat.SAFE else Event.DOUBT
        text = f"its end ({one.event}) could not be written: {clean(str(error), 500)}"
        bare = Settlement(one.claim, event, Kind.FAILED, delay=BARELY_AGAIN, error=text, counts=False)
        with suppress(StoreError, TypeError, ValueError):
            self._database.write(lambda tx: settling.settle(tx, [bare]))
        return (one,)

    def held(self, worker: int) -> tuple[Claim, ...]:
        """See :meth:`treppe.store.protocol.Store.held`."""
        return self._database.read(lambda tx: claims.held(tx, worker))

    def note(self, claim: Claim, name: str, value: bytes | None) -> bool:
        """See :meth:`treppe.store.protocol.Store.note`."""
        fence = (claim.seq, claim.token, claim.worker, name)
        if value is None:
            return bool(self._database.once(SQL["note_drop"], fence))
        return bool(self._database.once(SQL["note_put"], (*fence, value)))

    def notes(self, id: str) -> Mapping[str, bytes]:
        """See :meth:`treppe.store.protocol.Store.notes`."""
        return dict(self._database.once(SQL["notes_get"], (id,))) if can_be(id) else {}

    def get(self, id: str) -> Job | None:
        """See :meth:`treppe.store.protocol.Store.get`."""
        return self._database.read(lambda tx: reading.get(tx, id))

    def find(self, wanted: Filter, after: int | None = None, n: int = 50) -> Page:
        """See :meth:`treppe.store.protocol.Store.find`."""
        return self._database.read(lambda tx: reading.find(tx, wanted, after, n))

    def event(self, source: str, id: str) -> NewEvent | None:
        """See :meth:`treppe.store.protocol.Store.event`."""
        return self._database.read(lambda tx: reading.event(tx, source, id))

    def backlog(self) -> Backlog:
        """See :meth:`treppe.store.protocol.Store.backlog`."""
        return self._database.read(reading.backlog)

    def change(self, seen: Sequence[Seen], event: Event, by: str, note: str = "") -> tuple[Seen, ...]:
        """See :meth:`treppe.store.protocol.Store.change`."""
        refused: list[Seen] = []
        for i in range(0, len(seen), MAX_BATCH):
            some = seen[i : i + MAX_BATCH]
            refused += self._database.write(partial(acts.change, seen=some, event=event, by=by, note=note))
        self._database.once(SQL["notify"], (CHANNEL, ALL))
        self._ring()
        return tuple(refused)

    def wait(self, timeout: float, bell: Bell) -> None:
        """See :meth:`treppe.store.protocol.Store.wait`."""
        waiters = self._here()
        waiters.bells.add(bell)
        listener = waiters.listener
        if listener.open():  # whatever came before was not heard
            return
        until = time.monotonic() + min(timeout, listener.patience())
        while self._rung == self._looked and not bell.rings:
            left = until - time.monotonic()
            if left <= 0:
                return
            listener.test()
            bell.wait(left, listener.fd)
            if listener.hear():
                self._ring()

    def remember_tasks(self, tasks: Mapping[str, Mapping[str, object]]) -> None:
        """Keep what the code says of tasks, for ``treppe.enqueue()`` in SQL: settings by name, durations in seconds."""
        rows = [(name, putting.task_settings(settings)) for name, settings in sorted(tasks.items())]
        if rows:
            self._database.once(SQL["task_put"], ([name for name, _ in rows], [settings for _, settings in rows]))

    def upkeep(self, after_lapse: AfterLapse | None) -> Upkept:
        """See :meth:`treppe.store.protocol.Store.upkeep`."""
        return self._keeper.round(after_lapse)

    def migrate(self) -> list[str]:
        """See :meth:`treppe.store.protocol.Store.migrate`."""
        if self._database.read(migrating.is_current):  # a start never waits for a lock without need
            return []
        return self._database.write(migrating.migrate)

    def close(self) -> None:
        """See :meth:`treppe.store.protocol.Store.close`."""
        self._database.close()
        waiters, self._waiters = self._here(), _Waiters(self._database)
        waiters.listener.close()

    def _here(self) -> _Waiters:
        if os.getpid() != self._waiters.pid:  # forked: bells, ear and their locks are the parent's
            _abandoned.append(self._waiters)
            self._waiters = _Waiters(self._database)
        return self._waiters

    def _take_in(self) -> None:
        """Read what was said while nobody waits: unread it would fill the line, and the server would stand still."""
        if self._here().listener.hear():
            self._ring()

    def _ring(self) -> None:
        self._rung += 1
        waiters = self._here()
        waiters.listener.stir()
        for bell in tuple(waiters.bells):
            bell.ring()


_abandoned: list[_Waiters] = []
