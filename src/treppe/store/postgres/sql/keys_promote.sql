-- The first of each line that nobody holds may be claimed. Its row is locked whatever it is doing: a claim that is about
-- to park it ends first. Answered are the keys whose first has vanished meanwhile: look at those again.
WITH key AS MATERIALIZED (
  SELECT DISTINCT k.queue, k.okey FROM unnest($1::text[], $2::text[]) AS k (queue, okey)
  WHERE (SELECT s.seq FROM treppe.slot s WHERE s.queue = k.queue AND s.okey = k.okey AND s.n = 0) IS NULL
), head AS MATERIALIZED (
  SELECT k.queue, k.okey, h.seq FROM key k CROSS JOIN LATERAL (
    SELECT l.seq FROM treppe.live l
    WHERE l.queue = k.queue AND l.okey = k.okey
      AND l.due_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
    ORDER BY l.due_at, l.seq LIMIT 1) h
), locked AS MATERIALIZED (
  SELECT seq, parked FROM treppe.live WHERE seq = ANY(ARRAY(SELECT seq FROM head)) ORDER BY seq FOR UPDATE
), woken AS (
  UPDATE treppe.live SET parked = 0 WHERE seq = ANY(ARRAY(SELECT seq FROM locked WHERE parked = 1)) RETURNING seq
)
SELECT h.queue, h.okey, h.seq IN (SELECT seq FROM locked), h.seq IN (SELECT seq FROM woken) FROM head h
