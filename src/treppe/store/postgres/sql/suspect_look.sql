SELECT l.seq, l.okey, l.repeat, l.due_at, l.run_at, l.seen_tried IS NOT NULL
FROM treppe.live l
WHERE l.queue = $1 AND l.parked = 0 AND l.suspect AND NOT l.running
  AND l.run_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
  AND NOT l.cancel AND l.charged < l.attempts AND l.crashes < l.max_crashes
  AND l.expires_at > (SELECT extract(epoch FROM clock_timestamp())::double precision)
  AND l.task = ANY($2::text[])
ORDER BY l.run_at, l.seq
LIMIT 20
FOR UPDATE OF l SKIP LOCKED
