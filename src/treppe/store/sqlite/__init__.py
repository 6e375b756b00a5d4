"""Jobs in one SQLite file: the ground floor. Several processes of one machine may share it."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar
from weakref import WeakSet

from treppe.errors import StoreError, StoreUnavailable
from treppe.job import Claim, Event, Job, Kind, NewEvent, NewJob, Repeat, Settlement
from treppe.store.bell import Bell
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
from treppe.store.sqlite import acts, claims, migrating, putting, reading, settling
from treppe.store.sqlite.claiming import Claimer
from treppe.store.sqlite.database import SQL, Connection, Database
from treppe.store.sqlite.journal import SQLiteJournal
from treppe.store.sqlite.keeping import Keeper
from treppe.store.sqlite.watching import Watch
from treppe.store.text import can_be, clean

T = TypeVar("T")

log = logging.getLogger("treppe.store")

LEASE = 10.0
KEEP_EVENTS = 30 * 86400.0
BARELY_AGAIN = 60.0


class _Waiters:
    """Who waits for work in this process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.bells: WeakSet[Bell] = WeakSet()
        self.watch: Watch | None = None


class SQLiteStore:
    """Satisfies :class:`treppe.store.protocol.Store` on the SQLite file at *path*.

    ``clock`` gives the store's time in Unix seconds. ``durable=False`` skips fsync, for tests.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = SQLiteStore(folder.name + "/jobs.db")
    >>> store.migrate()
    ['0001_tables']
    >>> store.backlog().open
    0
    >>> store.close(); folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        durable: bool = True,
        keep_events: float = KEEP_EVENTS,
    ) -> None:
        if sqlite3.sqlite_version_info < (3, 35):
            raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old: Treppe needs 3.35 or newer")
        self._database = Database(path, durable)
        self.now = clock
        self.lease = LEASE
        self.can = Can(
            within=True,
            many_machines=False,
            find=True,
            survives_power_loss=durable,
            durability="every answer waits for the disk (synchronous=FULL)" if durable else "none: for tests only",
            puts_at_once=True,
        )
        self.journal: JournalPort = SQLiteJournal(self._database, clock)
        self._claimer = Claimer()
        self._keeper = Keeper(self._database, clock, keep_events)
        self._waiters = _Waiters()
        self._version: int | None = None
        self._rung = self._looked = 0  # changes made in this process, and how many the last claim has seen

    @property
    def path(self) -> str:
        """The file."""
        return str(self._database.path)

    def put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put:
        """See :meth:`treppe.store.protocol.Store.put`."""
        placed = self._database.write(lambda db: putting.put(db, jobs, events, self.now()))
        self._ring()
        return placed

    def try_put(self, jobs: Sequence[NewJob], events: Sequence[NewEvent] = ()) -> Put | None:
        """See :meth:`treppe.store.protocol.Store.try_put`."""
        placed = self._database.try_write(lambda db: putting.put(db, jobs, events, self.now()))
        if placed is not None:
            self._ring()
        return placed

    def plan(self, jobs: Sequence[NewJob]) -> Plan:
        """See :meth:`treppe.store.protocol.Store.plan`. Missing tables are made in the caller's transaction too."""
        yield from migrating.plan()
        return (yield from putting.plan(jobs, self.now()))

    def enlist(self, worker: int, name: str, lease: float) -> None:
        """See :meth:`treppe.store.protocol.Store.enlist`."""
        self._database.write_apart(
            lambda db: db.execute(SQL["worker_enlist"], (worker, clean(name), self.now() + lease)).rowcount
        )

    def renew(self, worker: int, lease: float) -> bool:
        """See :meth:`treppe.store.protocol.Store.renew`."""
        return (
            self._database.write_apart(
                lambda db: db.execute(SQL["worker_renew"], (worker, self.now() + lease)).rowcount
            )
            == 1
        )

    def retire(self, worker: int) -> None:
        """See :meth:`treppe.store.protocol.Store.retire`."""
        self._database.write(lambda db: db.execute(SQL["worker_retire"], (worker,)).rowcount)

    def claim(self, wanted: Wanted, pace: Pace, settlements: Sequence[Settlement] = ()) -> Claimed:
        """See :meth:`treppe.store.protocol.Store.claim`."""

        def work(db: Connection) -> Claimed:
            self._version = db.execute("PRAGMA data_version").fetchone()[0]
            self._looked = self._rung
            now = self.now()
            refused = settling.settle(db, settlements, now) if settlements else ()
            claimed = self._claimer.claim(db, wanted, pace, now)
            return Claimed(claimed.claims, tuple(refused), claimed.next_in, claimed.suspects)

        return self._database.write(work)

    def settle(self, settlements: Sequence[Settlement]) -> tuple[Settlement, ...]:
        """See :meth:`treppe.store.protocol.Store.settle`."""
        if not settlements:
            return ()
        try:
            refused = self._database.write(lambda db: settling.settle(db, settlements, self.now()))
        except StoreUnavailable:
            raise
        except (StoreError, TypeError, ValueError) as error:
            if len(settlements) == 1:
                return self._settle_barely(settlements[0], error)
            half = len(settlements) // 2
            return self.settle(settlements[:half]) + self.settle(settlements[half:])
        return tuple(refused)

    def _settle_barely(self, one: Settlement, error: Exception) -> tuple[Settlement, ...]:
        """An end that cannot be written must not leave its job running for ever."""
        log.error('the end of job "%s" cannot be written: %s', one.claim.id, error)
        event = Event.DEFER if one.claim.repeat is Repeat.SAFE else Event.DOUBT
        text = f"its end ({one.event}) could not be written: {clean(str(error), 500)}"
        bare = Settlement(one.claim, event, Kind.FAILED, delay=BARELY_AGAIN, error=text, counts=False)
        with suppress(StoreError, TypeError, ValueError):
            self._database.write(lambda db: settling.settle(db, [bare], self.now()))
        return (one,)

    def held(self, worker: int) -> tuple[Claim, ...]:
        """See :meth:`treppe.store.protocol.Store.held`."""
        return self._database.read(lambda db: claims.held(db, worker, self.now()))

    def note(self, claim: Claim, name: str, value: bytes | None) -> bool:
        """See :meth:`treppe.store.protocol.Store.note`."""
        fence = (claim.seq, claim.token, claim.worker)

        def work(db: Connection) -> bool:
            if not db.execute(SQL["note_fence"], fence).fetchone():
                return False
            if value is None:
                db.execute(SQL["note_drop"], (claim.seq, name))
            else:
                db.execute(SQL["note_put"], (*fence, name, value))
            return True

        return self._database.write(work)

    def notes(self, id: str) -> Mapping[str, bytes]:
        """See :meth:`treppe.store.protocol.Store.notes`."""
        if not can_be(id):
            return {}
        return dict(self._database.read(lambda db: db.execute(SQL["notes_get"], (id,)).fetchall()))

    def get(self, id: str) -> Job | None:
        """See :meth:`treppe.store.protocol.Store.get`."""
        return self._database.read(lambda db: reading.get(db, id))

    def find(self, wanted: Filter, after: int | None = None, n: int = 50) -> Page:
        """See :meth:`treppe.store.protocol.Store.find`."""
        return self._database.read(lambda db: reading.find(db, wanted, after, n, self.now()))

    def event(self, source: str, id: str) -> NewEvent | None:
        """See :meth:`treppe.store.protocol.Store.event`."""
        return self._database.read(lambda db: reading.event(db, source, id))

    def backlog(self) -> Backlog:
        """See :meth:`treppe.store.protocol.Store.backlog`."""
        return self._database.read(lambda db: reading.backlog(db, self.now()))

    def change(self, seen: Sequence[Seen], event: Event, by: str, note: str = "") -> tuple[Seen, ...]:
        """See :meth:`treppe.store.protocol.Store.change`."""
        refused: list[Seen] = []
        for i in range(0, len(seen), MAX_BATCH):
            some = seen[i : i + MAX_BATCH]
            refused += self._database.write(
                partial(acts.change, seen=some, event=event, by=by, note=note, now=self.now())
            )
        self._ring()
        return tuple(refused)

    def wait(self, timeout: float, bell: Bell) -> None:
        """See :meth:`treppe.store.protocol.Store.wait`."""
        waiters = self._here()
        waiters.bells.add(bell)
        watch = waiters.watch = waiters.watch or self._begin_watch()
        until = time.monotonic() + timeout
        while self._rung == self._looked and not bell.rings:
            left = until - time.monotonic()
            if left <= 0:
                return
            bell.wait(min(left, watch.patience()), watch.fd)
            watch.look()
            version = self._database.version()
            if version is not None and version != self._version:
                watch.stir()
                return

    def _begin_watch(self) -> Watch:
        self._database.version()  # the log is there once the file is open
        return Watch(self._database.path)

    def _here(self) -> _Waiters:
        if os.getpid() != self._waiters.pid:  # forked: bells, watch and their locks are the parent's
            self._waiters = _Waiters()
        return self._waiters

    def upkeep(self, after_lapse: AfterLapse | None) -> Upkept:
        """See :meth:`treppe.store.protocol.Store.upkeep`."""
        done = self._keeper.round(after_lapse)
        if not done.more:
            self._database.checkpoint()
        return done

    def migrate(self) -> list[str]:
        """See :meth:`treppe.store.protocol.Store.migrate`."""
        if self._database.read(migrating.is_current):  # a start never waits for the write lock without need
            return []
        return self._database.write(migrating.migrate)

    def settings(self) -> dict[str, object]:
        """What the file is really set to, for ``treppe doctor``."""
        return {name: self._database.pragma(name) for name in ("journal_mode", "synchronous")}

    def close(self) -> None:
        """See :meth:`treppe.store.protocol.Store.close`."""
        self._database.close()
        waiters, self._waiters = self._here(), _Waiters()
        if waiters.watch is not None:
            waiters.watch.close()

    def _ring(self) -> None:
        self._rung += 1
        for bell in tuple(self._here().bells):
            bell.ring()
