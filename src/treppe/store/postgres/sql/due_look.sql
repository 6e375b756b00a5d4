-- Claimable jobs of one queue and band, locked; what must not be taken is excluded before the LIMIT, and what another
-- worker is about to take is passed over. The clock stands in a sub-select: by itself it would bound no scan.
WITH found AS MATERIALIZED (
  SELECT l.seq, l.okey, l.repeat, l.due_at, l.run_at, l.seen_tried IS NOT NULL AS tried
  FROM treppe.live l
  WHERE l.queue = $1 AND l.band = $2::smallint AND l.parked = 0 AND NOT l.suspect
    AND l.run_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
    AND (l.run_at, l.seq) > ($3::double precision, $4::bigint)
    AND NOT l.running AND NOT l.cancel AND l.charged < l.attempts AND l.crashes < l.max_crashes
    AND l.expires_at > (SELECT extract(epoch FROM clock_timestamp())::double precision)
    AND l.task = ANY($5::text[]) AND l.repeat BETWEEN $6::smallint AND $7::smallint
  ORDER BY l.run_at, l.seq
  LIMIT $8
  FOR UPDATE OF l SKIP LOCKED
)
SELECT d.took, f.seq, f.okey, f.repeat, f.due_at, f.run_at, f.tried
FROM (SELECT count(*), extract(epoch FROM timeofday()::timestamptz - statement_timestamp())::double precision AS took FROM found) d
LEFT JOIN found f ON true
ORDER BY f.run_at, f.seq
