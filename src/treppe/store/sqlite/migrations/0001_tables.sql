-- Immutable job row + one narrow live row + append-only attempts. Order and joins go by seq; people see id.
CREATE TABLE treppe_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  source TEXT NOT NULL,
  id TEXT NOT NULL,
  topic TEXT NOT NULL,
  at REAL NOT NULL,
  content_type TEXT NOT NULL,
  headers BLOB NOT NULL,
  body BLOB NOT NULL,              -- exactly as it came; shared by the event's jobs
  UNIQUE (source, id)
);

CREATE TABLE treppe_job (          -- written once at enqueue; enough to revive from
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  task TEXT NOT NULL,
  queue TEXT NOT NULL,
  payload BLOB NOT NULL,           -- empty when the job carries its event's body
  content_type TEXT NOT NULL,
  event INTEGER,
  okey TEXT,
  priority INTEGER NOT NULL,
  repeat INTEGER NOT NULL,         -- 0 safe, 1 look, 2 ask
  attempts INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  first_due REAL NOT NULL,
  expires REAL NOT NULL,           -- seconds after the first due time
  deadline REAL,
  keep REAL NOT NULL,
  skip_dead INTEGER NOT NULL,
  created_at REAL NOT NULL
);
CREATE INDEX treppe_job_event ON treppe_job (event) WHERE event IS NOT NULL;

CREATE TABLE treppe_live (         -- the only hot table: one row per job that has not ended
  seq INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  band INTEGER NOT NULL,
  task TEXT NOT NULL,
  due_at REAL NOT NULL,            -- the first due time: ages and the place in the key's line; never moved
  run_at REAL NOT NULL,            -- not before; for handed-over jobs: confirmed by
  parked INTEGER NOT NULL DEFAULT 0,   -- 0 claimable, 1 behind its order key, 2 unclear, 3 handed over, 4 running
  worker INTEGER,
  token INTEGER NOT NULL DEFAULT 0,    -- + 1 on every claim, never lowered
  lapsed INTEGER NOT NULL DEFAULT 0,   -- 1 upkeep took it back, the last token may still settle; 2 and it counted as a crash
  suspect INTEGER NOT NULL DEFAULT 0,
  cancel INTEGER NOT NULL DEFAULT 0,
  repeat INTEGER NOT NULL,
  claims INTEGER NOT NULL DEFAULT 0,
  charged INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL,
  crashes INTEGER NOT NULL DEFAULT 0,
  max_crashes INTEGER NOT NULL,
  seen_ok INTEGER,                 -- the task's counters at this job's last failure
  seen_tried INTEGER,
  seen_at REAL,
  started_at REAL,
  expires_at REAL NOT NULL,
  half_at REAL,                    -- when half of the time to the deadline has passed
  deadline_at REAL,
  okey TEXT,
  slotted INTEGER NOT NULL DEFAULT 0,
  skip_dead INTEGER NOT NULL
);
CREATE INDEX treppe_live_due ON treppe_live (queue, band, run_at, seq) WHERE parked = 0 AND suspect = 0;
CREATE INDEX treppe_live_suspect ON treppe_live (queue, run_at, seq) WHERE parked = 0 AND suspect = 1;
CREATE INDEX treppe_live_okey ON treppe_live (queue, okey, due_at, seq) WHERE okey IS NOT NULL;
CREATE INDEX treppe_live_behind ON treppe_live (seq) WHERE parked = 1;
CREATE INDEX treppe_live_parked ON treppe_live (parked, seq) WHERE parked IN (2, 3);
CREATE INDEX treppe_live_unconfirmed ON treppe_live (run_at) WHERE parked = 3;
CREATE INDEX treppe_live_half ON treppe_live (half_at) WHERE half_at IS NOT NULL;

CREATE TABLE treppe_slot (         -- order keys (okey) and concurrency limits (okey ''), kept by uniqueness
  queue TEXT NOT NULL,
  okey TEXT NOT NULL,
  n INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (queue, okey, n)
) WITHOUT ROWID;
CREATE INDEX treppe_slot_seq ON treppe_slot (seq);

CREATE TABLE treppe_attempt (      -- append-only history: ended claims and acts
  seq INTEGER NOT NULL,
  n INTEGER NOT NULL,              -- grows within the job: 10,000 × token, and one more for each further line
  token INTEGER NOT NULL,
  event TEXT NOT NULL,
  kind TEXT NOT NULL,
  charged INTEGER NOT NULL,
  due_at REAL NOT NULL,
  started_at REAL,
  finished_at REAL NOT NULL,
  worker INTEGER,
  error TEXT NOT NULL,
  result BLOB,
  detail BLOB,
  keep_until REAL,                 -- set on the line that ended the job
  PRIMARY KEY (seq, n)
) WITHOUT ROWID;
CREATE INDEX treppe_attempt_keep ON treppe_attempt (keep_until) WHERE keep_until IS NOT NULL;

CREATE TABLE treppe_dead (
  seq INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  dead_at REAL NOT NULL,
  reason TEXT NOT NULL,
  token INTEGER NOT NULL,
  claims INTEGER NOT NULL,
  charged INTEGER NOT NULL,
  crashes INTEGER NOT NULL
);

CREATE TABLE treppe_note (
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (seq, name)
) WITHOUT ROWID;

CREATE TABLE treppe_worker (       -- the lease: one row per worker
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  until REAL NOT NULL,
  gone INTEGER NOT NULL DEFAULT 0  -- given up by upkeep: renews and claims no more
);

CREATE TABLE treppe_health (task TEXT PRIMARY KEY, ok INTEGER NOT NULL, tried INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE treppe_count (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE treppe_journal (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  stream TEXT NOT NULL,
  at REAL NOT NULL,
  record BLOB NOT NULL
);
CREATE INDEX treppe_journal_stream ON treppe_journal (stream, seq);
CREATE TABLE treppe_value (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

CREATE VIEW treppe_seen AS         -- a job as people see it; the state is derived, never stored
SELECT j.seq, j.id, j.task, j.queue, j.okey, j.priority, j.repeat, j.attempts, j.first_due, j.deadline, j.created_at,
       CASE WHEN l.seq IS NOT NULL
            THEN CASE l.parked WHEN 2 THEN 'unclear' WHEN 3 THEN 'handed_over' WHEN 4 THEN 'running' ELSE 'waiting' END
            WHEN d.seq IS NOT NULL THEN 'dead'
            WHEN a.event = 'cancel' THEN 'cancelled'
            WHEN a.event = 'move' THEN 'moved'
            ELSE 'done' END AS state,
       coalesce(l.token, d.token, a.token) AS token,
       coalesce(l.claims, d.claims, a.token) AS claims,
       coalesce(l.charged, d.charged, 0) AS charged,
       coalesce(l.crashes, d.crashes, 0) AS crashes,
       coalesce(l.due_at, j.first_due) AS due_at,
       l.run_at, l.expires_at, l.suspect, l.cancel,
       CASE WHEN l.seq IS NULL THEN coalesce(d.dead_at, a.finished_at) END AS ended_at,
       coalesce(d.reason, a.error, '') AS error,
       e.source, e.id AS event_id,
       CASE l.parked WHEN 1 THEN coalesce(
         (SELECT o.id FROM treppe_slot s JOIN treppe_job o ON o.seq = s.seq
          WHERE s.queue = j.queue AND s.okey = j.okey AND s.n = 0),
         (SELECT o.id FROM treppe_live h JOIN treppe_job o ON o.seq = h.seq
          WHERE h.queue = j.queue AND h.okey = j.okey ORDER BY h.due_at, h.seq LIMIT 1)) END AS behind
FROM treppe_job j
LEFT JOIN treppe_live l ON l.seq = j.seq
LEFT JOIN treppe_dead d ON d.seq = j.seq
LEFT JOIN treppe_event e ON e.seq = j.event
LEFT JOIN treppe_attempt a ON a.seq = j.seq AND a.n = (SELECT max(n) FROM treppe_attempt x WHERE x.seq = j.seq);
