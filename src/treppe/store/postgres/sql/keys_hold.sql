-- A head that dies before it ever ran blocks its key like one that ran.
WITH mine AS MATERIALIZED (
  SELECT seq, queue, okey FROM treppe.live WHERE seq = ANY($1::bigint[])
)
INSERT INTO treppe.slot (queue, okey, n, seq)
SELECT l.queue, l.okey, 0, l.seq FROM mine l
WHERE l.okey IS NOT NULL AND l.seq = coalesce((
    SELECT h.seq FROM treppe.live h
    WHERE h.queue = l.queue AND h.okey = l.okey
      AND h.due_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
    ORDER BY h.due_at, h.seq LIMIT 1), l.seq)
ORDER BY l.queue, l.okey
ON CONFLICT (queue, okey, n) DO NOTHING
