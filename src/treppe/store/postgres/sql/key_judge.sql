-- Of jobs that are locked already: who leads its key? Holder and head are read after the locks were taken, so whoever
-- lets go of a key meanwhile waits for us and finds what we parked. A head that was left behind is woken.
WITH mine AS MATERIALIZED (
  SELECT seq, queue, okey FROM treppe.live WHERE seq = ANY($1::bigint[])
), judged AS MATERIALIZED (
  SELECT m.seq, s.seq AS holder, h.seq AS head, h.parked
  FROM mine m
  LEFT JOIN treppe.slot s ON s.queue = m.queue AND s.okey = m.okey AND s.n = 0
  LEFT JOIN LATERAL (
    SELECT l.seq, l.parked FROM treppe.live l
    WHERE l.queue = m.queue AND l.okey = m.okey
      AND l.due_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
    ORDER BY l.due_at, l.seq LIMIT 1) h ON true
), parked AS (
  UPDATE treppe.live l SET parked = 1 FROM judged j WHERE l.seq = j.seq AND coalesce(j.holder, j.head, j.seq) <> j.seq
), left_behind AS MATERIALIZED (
  SELECT seq FROM treppe.live
  WHERE seq IN (SELECT head FROM judged WHERE holder IS NULL AND head <> seq AND judged.parked = 1) AND parked = 1
  FOR UPDATE SKIP LOCKED
), woken AS (
  UPDATE treppe.live l SET parked = 0 FROM left_behind b WHERE l.seq = b.seq
)
SELECT seq FROM judged WHERE coalesce(holder, head, seq) = seq
