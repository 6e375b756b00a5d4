-- Claimable jobs of one queue and band beyond a long line: of other keys than $6, or of none. At most $7 rows are walked
-- over, unlocked; what is found is locked and looked at again. With it where the walk ended, if it did not find enough.
WITH walked AS MATERIALIZED (
  SELECT l.seq, l.run_at, l.okey FROM treppe.live l
  WHERE l.queue = $1 AND l.band = $2::smallint AND l.parked = 0 AND NOT l.suspect
    AND l.run_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
    AND (l.run_at, l.seq) > ($3::double precision, $4::bigint)
    AND NOT l.running AND NOT l.cancel AND l.charged < l.attempts AND l.crashes < l.max_crashes
    AND l.expires_at > (SELECT extract(epoch FROM clock_timestamp())::double precision)
    AND l.task = ANY($5::text[]) AND l.repeat BETWEEN 0 AND $8::smallint
  ORDER BY l.run_at, l.seq
  LIMIT $7
), chosen AS MATERIALIZED (
  SELECT seq FROM walked WHERE okey IS NULL OR okey <> ALL($6::text[]) LIMIT $9
), found AS MATERIALIZED (
  SELECT l.seq, l.okey, l.repeat, l.due_at, l.run_at, l.seen_tried IS NOT NULL AS tried
  FROM treppe.live l
  WHERE l.seq = ANY(ARRAY(SELECT seq FROM chosen)) AND l.parked < 1 AND NOT l.suspect AND NOT l.running AND NOT l.cancel
  FOR UPDATE OF l SKIP LOCKED
), ending AS MATERIALIZED (
  SELECT run_at, seq FROM walked WHERE (SELECT count(*) FROM chosen) < $9 ORDER BY run_at DESC, seq DESC LIMIT 1
)
SELECT e.run_at, e.seq, f.seq, f.okey, f.repeat, f.due_at, f.run_at, f.tried
FROM (SELECT 1) one LEFT JOIN ending e ON true LEFT JOIN found f ON true
ORDER BY f.run_at, f.seq
