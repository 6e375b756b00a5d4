"""The limit: the same rows moved by a hand-written loop over psycopg, in batches of 100."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from bench.environments import Needs
from bench.peers import Queue, Variant, chunks

BATCH = 100

TABLE = """CREATE TABLE job (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sent float8 NOT NULL,
open smallint NOT NULL DEFAULT 1, due timestamptz NOT NULL, lease timestamptz, attempts int NOT NULL DEFAULT 0,
done_at timestamptz)"""
INDEX = "CREATE INDEX job_due ON job (due, seq) WHERE open = 1"
INSERT = "INSERT INTO job (sent, due) VALUES (%s, now())"
COPY = "COPY job (sent, due) FROM STDIN (FORMAT binary)"
FINISH = "UPDATE job SET open = 0, done_at = clock_timestamp() WHERE seq = ANY (%b)"
CLAIM = """UPDATE job SET open = 2, lease = now() + interval '10 s', attempts = attempts + 1 WHERE seq = ANY (ARRAY
(SELECT seq FROM job WHERE open = 1 AND due <= now() ORDER BY due, seq LIMIT %s FOR UPDATE SKIP LOCKED))
RETURNING seq, sent"""


class Peer(Queue):
    """No tasks, no threads, no fence, no retry: only durable claims and ends, in one transaction a batch."""

    needs = Needs(("psycopg[binary]==3.3.9",))
    variants: ClassVar = {
        "batch_100": Variant(
            "bare psycopg",
            "own loop, batches of 100, one pipelined transaction each; bulk by COPY: the limit",
            limit=True,
        )
    }
    open = "SELECT EXISTS (SELECT FROM job WHERE open > 0)"
    _db: Any

    def prepare(self) -> None:
        self.connect()
        self._db.execute(TABLE)
        self._db.execute(INDEX)

    def connect(self) -> None:
        import psycopg

        self._db = psycopg.connect(self.place, autocommit=True)

    def fill(self, n: int, delay: float = 0.0) -> None:
        due = datetime.now(UTC) + timedelta(seconds=delay)
        for size in chunks(n, 10_000):
            with self._db.cursor() as cursor, cursor.copy(COPY) as copy:
                copy.set_types(["float8", "timestamptz"])
                for _ in range(size):
                    copy.write_row((0.0, due))

    def put(self, sent: float) -> None:
        self._db.execute(INSERT, (sent,))

    def work(self) -> None:
        self.connect()
        ended: list[int] = []
        while True:
            with self._db.pipeline(), self._db.transaction():
                if ended:
                    self._db.execute(FINISH, (ended,))
                claims = self._db.execute(CLAIM, (BATCH,), binary=True)
            claimed = claims.fetchall()
            ended = [seq for seq, _ in claimed]
            for _, sent in claimed:
                if lasts := self.job(sent):
                    time.sleep(lasts)
            if not claimed:
                time.sleep(0.01)
