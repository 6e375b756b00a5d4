-- Of jobs that are locked already: who leads its key? Holder and head are read after the locks were taken, so whoever
-- lets go of a key meanwhile waits for us and finds what we parked. A head that was left behind is woken.
WITH mine AS MATERIALIZED (
  SELECT seq, queue, okey FROM treppe.live WHERE seq = ANY($1::bigint[])
), line AS MATERIALIZED (
  SELECT k.queue, k.okey, h.seq AS head, h.parked,
         (SELECT s.seq FROM treppe.slot s WHERE s.queue = k.queue AND s.okey = k.okey AND s.n = 0) AS holder
  FROM (SELECT DISTINCT queue, okey FROM mine) k
  LEFT JOIN LATERAL (
    SELECT l.seq, l.parked FROM treppe.live l
    WHERE l.queue = k.queue AND l.okey = k.okey
      AND l.due_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
    ORDER BY l.due_at, l.seq LIMIT 1) h ON true
), judged AS MATERIALIZED (
  SELECT m.seq, n.head, n.parked, n.holder FROM mine m JOIN line n ON n.queue = m.queue AND n.okey = m.okey
), parked AS (
  UPDATE treppe.live l SET parked = 1 
  FROM judged j WHERE l.seq = ANY($1) AND l.seq = j.seq AND coalesce(j.holder, j.head, j.seq) <> j.seq
), left_behind AS MATERIALIZED (
  SELECT seq FROM treppe.live
  WHERE seq = ANY(ARRAY(SELECT head FROM judged j WHERE j.holder IS NULL AND j.head <> j.seq AND j.parked = 1)) AND parked = 1
  FOR UPDATE SKIP LOCKED
), woken AS (
  UPDATE treppe.live SET parked = 0 WHERE seq = ANY(ARRAY(SELECT seq FROM left_behind))
)
SELECT seq FROM judged WHERE coalesce(holder, head, seq) = seq
