-- Where there is work for a worker ($1) that has not been given up: the first due time of each queue and band by one skip
-- scan, and whether the queue's pace is watched; band -1 are suspects of its tasks ($2). $3 = false leaves the scan out.
-- With it the clock, and how long the server looked. Upkeep gives nobody up whose claim is under way.
WITH RECURSIVE me AS MATERIALIZED (
  SELECT extract(epoch FROM clock_timestamp())::double precision AS now FROM treppe.worker WHERE id = $1 AND NOT gone FOR KEY SHARE
), q (queue) AS (
  (SELECT queue FROM treppe.live WHERE parked = 0 AND NOT suspect AND $3::boolean ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (SELECT l.queue FROM treppe.live l WHERE l.parked = 0 AND NOT l.suspect AND l.queue > q.queue
          ORDER BY l.queue LIMIT 1)
  FROM q WHERE q.queue IS NOT NULL
), head AS MATERIALIZED (
  SELECT q.queue, b.band, h.run_at
  FROM q CROSS JOIN (VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint)) AS b (band) CROSS JOIN LATERAL (
    SELECT l.run_at FROM treppe.live l
    WHERE l.queue = q.queue AND l.band = b.band AND l.parked = 0 AND NOT l.suspect AND NOT l.running
    ORDER BY l.run_at, l.seq LIMIT 1) h
  WHERE q.queue IS NOT NULL
), scanned AS MATERIALIZED (
  SELECT count(*), extract(epoch FROM timeofday()::timestamptz - statement_timestamp())::double precision AS took FROM head
), work AS (
  SELECT h.queue, h.band, h.run_at,
         (SELECT true FROM treppe.value v WHERE v.name = 'flow:' || h.queue) IS NOT NULL
         OR (SELECT true FROM treppe.journal r WHERE r.stream = 'report:' || h.queue LIMIT 1) IS NOT NULL AS watched,
         0::bigint AS waiting
  FROM head h
  UNION ALL
  SELECT queue, -1, min(run_at), false,
         count(*) FILTER (WHERE run_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision))
  FROM treppe.live
  WHERE parked = 0 AND suspect AND NOT running AND NOT cancel AND charged < attempts AND crashes < max_crashes
    AND task = ANY($2::text[])
  GROUP BY queue
)
SELECT me.now, s.took, w.queue, w.band, w.run_at, w.watched, w.waiting
FROM me CROSS JOIN scanned s LEFT JOIN work w ON true
