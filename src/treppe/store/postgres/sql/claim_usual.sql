-- The usual claim in one statement: the next jobs of one queue ($2) and band ($3), where nothing else is due for a worker
-- ($1) that has not been given up, and nothing is known of the queue's pace. Other lanes are looked at first, and beside
-- this one, whose ended jobs lie where a scan would begin. Taken are jobs that need no second look: safe to repeat, never
-- failed before, first of their keys. They are updated where they were just locked. The row without a number tells the rest: how
-- many were found, since when the server looked, and where the first one stands.
WITH RECURSIVE me AS MATERIALIZED (
  SELECT id FROM treppe.worker WHERE id = $1 AND NOT gone FOR KEY SHARE
), q (queue, below) AS (
  (SELECT (SELECT l.queue FROM treppe.live l WHERE l.parked = 0 AND NOT l.suspect AND l.queue < $2 ORDER BY l.queue LIMIT 1), true
   UNION ALL
   SELECT (SELECT l.queue FROM treppe.live l WHERE l.parked = 0 AND NOT l.suspect AND l.queue > $2 ORDER BY l.queue LIMIT 1), false)
  UNION ALL
  SELECT CASE WHEN q.below
              THEN (SELECT l.queue FROM treppe.live l
                    WHERE l.parked = 0 AND NOT l.suspect AND l.queue > q.queue AND l.queue < $2 ORDER BY l.queue LIMIT 1)
              ELSE (SELECT l.queue FROM treppe.live l
                    WHERE l.parked = 0 AND NOT l.suspect AND l.queue > q.queue ORDER BY l.queue LIMIT 1) END, q.below
  FROM q WHERE q.queue IS NOT NULL
), lane AS (
  SELECT queue, band FROM (SELECT queue FROM q WHERE queue IS NOT NULL UNION ALL SELECT $2) x,
       (VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint)) AS b (band)
  WHERE (queue, band) <> ($2, $3::smallint) AND ($4::text[] IS NULL OR queue = ANY($4))
), gate AS MATERIALIZED (
  SELECT EXISTS (SELECT FROM me)
    AND (SELECT true FROM treppe.value v WHERE v.name = 'flow:' || $2) IS NULL
    AND (SELECT true FROM treppe.journal r WHERE r.stream = 'report:' || $2 LIMIT 1) IS NULL
    AND (SELECT true FROM treppe.live s WHERE s.parked = 0 AND s.suspect LIMIT 1) IS NULL
    AND NOT EXISTS (
      SELECT FROM lane WHERE (
        SELECT l.run_at FROM treppe.live l
        WHERE l.queue = lane.queue AND l.band = lane.band AND l.parked = 0 AND NOT l.suspect AND NOT l.running
        ORDER BY l.run_at, l.seq LIMIT 1) <= (SELECT extract(epoch FROM clock_timestamp())::double precision)) AS is_open
), found AS MATERIALIZED (
  SELECT l.ctid, l.run_at, l.seq, l.okey,
         l.repeat = 0 AND l.seen_tried IS NULL AND (l.okey IS NULL OR l.seq = coalesce(
           (SELECT s.seq FROM treppe.slot s WHERE s.queue = l.queue AND s.okey = l.okey AND s.n = 0),
           (SELECT h.seq FROM treppe.live h
            WHERE h.queue = l.queue AND h.okey = l.okey
              AND h.due_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
            ORDER BY h.due_at, h.seq LIMIT 1))) AS usual
  FROM treppe.live l
  WHERE (SELECT is_open FROM gate)
    AND l.queue = $2 AND l.band = $3::smallint AND l.parked = 0 AND NOT l.suspect
    AND l.run_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
    AND (l.run_at, l.seq) > ($5::double precision, $6::bigint)
    AND NOT l.running AND NOT l.cancel AND l.charged < l.attempts AND l.crashes < l.max_crashes
    AND l.expires_at > (SELECT extract(epoch FROM clock_timestamp())::double precision)
    AND l.task = ANY($7::text[])
  ORDER BY l.run_at, l.seq
  LIMIT $8
  FOR UPDATE OF l SKIP LOCKED
), told AS MATERIALIZED (
  SELECT count(*) AS n, min(run_at) AS run_at, extract(epoch FROM timeofday()::timestamptz - statement_timestamp())::double precision AS took
  FROM found
), keyed AS (
  INSERT INTO treppe.slot AS s (queue, okey, n, seq)
  SELECT $2, okey, 0, seq FROM found WHERE usual AND okey IS NOT NULL ORDER BY okey
  ON CONFLICT (queue, okey, n) DO UPDATE SET seq = s.seq WHERE s.seq = excluded.seq
  RETURNING s.seq
), taken AS (
  UPDATE treppe.live l
  SET running = true, worker = $1, token = l.token + 1, claims = l.claims + 1, lapsed = 0, slotted = false, started_at = c.now
  FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c
  WHERE l.ctid = ANY(ARRAY(SELECT ctid FROM found WHERE usual AND (okey IS NULL OR seq IN (SELECT seq FROM keyed))))
  RETURNING l.seq, l.token, l.task, l.okey, l.claims, l.charged, l.attempts, l.run_at, l.crashes, l.due_at, l.expires_at,
            l.deadline_at
)
SELECT t.*, j.id, j.payload, j.content_type, j.event
FROM taken t CROSS JOIN LATERAL (SELECT * FROM treppe.job j WHERE j.seq = t.seq OFFSET 0) j
UNION ALL
SELECT NULL, n::integer, NULL, NULL, 0, 0, 0, run_at, 0, took, extract(epoch FROM clock_timestamp())::double precision, NULL,
       NULL, NULL, NULL, (SELECT f.seq FROM found f ORDER BY f.run_at, f.seq LIMIT 1)
FROM told
