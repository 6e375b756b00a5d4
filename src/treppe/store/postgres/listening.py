"""LISTEN and NOTIFY: a hint that there is work, never more. Asking goes on whatever is heard.

NOTIFY takes a lock on the whole database until the commit, so it is said at most once per transaction, not twice within
milliseconds, and not at all by who commits hundreds of times a second: then asking is cheaper.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

import psycopg

from treppe.errors import StoreError
from treppe.job import NewJob
from treppe.store.postgres.connecting import Connection, is_pooled, translated
from treppe.store.postgres.database import SQL, Database

log = logging.getLogger("treppe.store")

CHANNEL = "treppe"
ALL = "*"
SPACING = 0.005
MOST_A_SECOND = 200
TEST_EVERY = 30.0
ANSWERS_WITHIN = 10.0
AGAIN_AFTER = 5.0
SOON = 0.01


class Herald:
    """Decides whether a transaction tells others of its jobs."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}
        self._puts: deque[float] = deque(maxlen=MOST_A_SECOND)

    def word(self, jobs: Sequence[NewJob]) -> str | None:
        """What to say: the name of the queue, ``*`` for several, None for nothing."""
        now, word = time.monotonic(), self.word_of_others(jobs)
        if word is None or self._said.get(word, 0.0) > now - SPACING:
            return None
        if len(self._said) > 1000:
            self._said.clear()
        self._said[word] = now
        return word

    def word_of_others(self, jobs: Sequence[NewJob]) -> str | None:
        """The same for the caller's own transaction: it may commit much later or never, and so stands for no other."""
        now, queues = time.monotonic(), {job.queue for job in jobs}
        busy = len(self._puts) == MOST_A_SECOND and self._puts[0] > now - 1.0
        self._puts.append(now)
        if busy or not queues:
            return None
        return queues.pop() if len(queues) == 1 else ALL


class Listener:
    """An ear on a connection of its own. Behind a pooler there is none, and only asking is left."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._ear: Connection | None = None
        self._own = ""
        self._deaf = False  # a pooler is between us and the server
        self._next_try = 0.0
        self._next_test = 0.0
        self._answer_by: float | None = None
        self._stirred = time.monotonic()

    @property
    def fd(self) -> int | None:
        """What to poll for."""
        ear = self._ear
        return None if ear is None or ear.closed else ear.fileno()

    def open(self) -> bool:
        """Open the ear if it is not yet; True when it was opened now, so that what came before has to be asked for."""
        with self._lock:
            if self._ear is not None or self._deaf or time.monotonic() < self._next_try:
                return False
            self._next_try = time.monotonic() + AGAIN_AFTER
            try:
                with translated(self._database.url):
                    self._listen(self._database.connect())
            except StoreError as error:
                log.warning("cannot listen for new work, asking goes on: %s", error)
            return self._ear is not None

    def hear(self) -> bool:
        """Take in what was said; True if there may be work."""
        if self._ear is None:
            return False
        with self._lock:
            if self._ear is None:
                return False
            try:
                told = self._take_in(self._ear)
            except psycopg.Error as error:
                log.warning("the connection that listens for work was lost, asking goes on: %s", error)
                self._hang_up()
                return True
            if told:
                self.stir()
            return told

    def test(self) -> None:
        """See that the ear still hears what we say ourselves; one that does not is opened anew."""
        now = time.monotonic()
        if self._ear is None or now < self._next_test:
            return
        self._next_test = now + TEST_EVERY
        self._answer_by = now + ANSWERS_WITHIN
        with suppress(StoreError):  # whoever asks for work will find the same trouble
            self._database.once(SQL["notify"], (self._own, ""))

    def stir(self) -> None:
        """Something happened: more may follow that nobody is told of."""
        self._stirred = time.monotonic()

    def patience(self) -> float:
        """Seconds until it is worth asking again, heard or not: short after something happened, then ever longer."""
        return max(SOON, time.monotonic() - self._stirred)

    def close(self) -> None:
        """Stop listening."""
        with self._lock:
            self._hang_up()

    def _listen(self, connection: Connection) -> None:
        if is_pooled(connection):
            self._deaf = True
            connection.close()
            return
        self._own = f"{CHANNEL}_ear_{connection.info.backend_pid}"
        for channel in (CHANNEL, self._own):
            connection.execute(f"LISTEN {channel}")
        self._ear = connection
        self._answer_by = None
        self._next_test = time.monotonic() + TEST_EVERY

    def _take_in(self, ear: Connection) -> bool:
        told = False
        ear.pgconn.consume_input()
        while (notification := ear.pgconn.notifies()) is not None:
            if notification.relname == self._own.encode():
                self._answer_by = None
            else:
                told = True
        if self._answer_by is not None and time.monotonic() > self._answer_by:
            raise psycopg.OperationalError("it heard nothing of what we said ourselves")
        return told

    def _hang_up(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.close()
