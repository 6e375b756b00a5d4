-- Ended jobs whose time is over, with all that belongs to them. A job that was revived since has a live row or is dead.
WITH old AS MATERIALIZED (
  SELECT a.seq FROM treppe.attempt a
  WHERE a.keep_until <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
    AND NOT EXISTS (SELECT FROM treppe.live l WHERE l.seq = a.seq)
    AND NOT EXISTS (SELECT FROM treppe.dead d WHERE d.seq = a.seq)
  ORDER BY a.keep_until LIMIT $1
), locked AS MATERIALIZED (
  SELECT seq FROM treppe.job WHERE seq IN (SELECT seq FROM old) ORDER BY seq FOR UPDATE SKIP LOCKED
), attempts AS (
  DELETE FROM treppe.attempt a USING locked k WHERE a.seq = k.seq
), notes AS (
  DELETE FROM treppe.note n USING locked k WHERE n.seq = k.seq
)
DELETE FROM treppe.job j USING locked k WHERE j.seq = k.seq RETURNING j.seq
