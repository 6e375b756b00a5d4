"""The limit: the same rows moved by a hand-written loop over the bare driver, in batches of 100."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import ClassVar

from bench.peers import Queue, Variant

BATCH = 100

TABLE = """CREATE TABLE IF NOT EXISTS job (seq INTEGER PRIMARY KEY, sent REAL NOT NULL, open INTEGER NOT NULL DEFAULT 1,
due REAL NOT NULL, lease REAL, attempts INTEGER NOT NULL DEFAULT 0, done_at REAL)"""
INDEX = "CREATE INDEX IF NOT EXISTS job_due ON job (due, seq) WHERE open = 1"
INSERT = "INSERT INTO job (sent, due) VALUES (?, ?)"
FINISH = "UPDATE job SET open = 0, done_at = ? WHERE seq = ?"
CLAIM = """UPDATE job SET open = 2, lease = ?1 + 10, attempts = attempts + 1 WHERE seq IN
(SELECT seq FROM job WHERE open = 1 AND due <= ?1 ORDER BY due, seq LIMIT ?2) RETURNING seq, sent"""


class Peer(Queue):
    """No tasks, no threads, no fence, no retry: only durable claims and ends."""

    variants: ClassVar = {
        "batch_100": Variant("bare SQLite", "own loop, batches of 100, synchronous=FULL, WAL: the limit", limit=True)
    }

    def begin(self) -> None:
        with self._connect() as db:
            db.execute(TABLE)
            db.execute(INDEX)

    def fill(self, n: int, delay: float = 0.0) -> None:
        with self._connect() as db:
            db.executemany(INSERT, ((0.0, time.time() + delay) for _ in range(n)))

    def put(self, sent: float) -> None:
        with self._connect() as db:
            db.execute(INSERT, (sent, time.time()))

    def work(self) -> None:
        db, ended = self._connect(), list[tuple[float, int]]()
        while True:
            with db:
                db.execute("BEGIN IMMEDIATE")
                db.executemany(FINISH, ended)
                claimed = db.execute(CLAIM, (time.time(), BATCH)).fetchall()
            ended = []
            for seq, sent in claimed:
                self.job(sent)
                ended.append((time.time(), seq))
            if not claimed:
                time.sleep(0.01)

    def left(self) -> int | None:
        return int(self._connect().execute("SELECT count(*) FROM job WHERE open > 0").fetchone()[0])

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(Path(self.place) / "raw.db", timeout=10)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        return db
