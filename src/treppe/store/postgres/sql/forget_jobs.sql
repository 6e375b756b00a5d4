-- Ended jobs whose time is over, with all that belongs to them. A job that was revived since has a live row or is dead.
WITH old AS MATERIALIZED (
  SELECT a.seq FROM treppe.attempt a
  WHERE a.keep_until <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
    AND (SELECT l.seq FROM treppe.live l WHERE l.seq = a.seq) IS NULL
    AND (SELECT d.seq FROM treppe.dead d WHERE d.seq = a.seq) IS NULL
  ORDER BY a.keep_until LIMIT $1
), locked AS MATERIALIZED (
  SELECT seq FROM treppe.job WHERE seq = ANY(ARRAY(SELECT seq FROM old)) ORDER BY seq FOR UPDATE SKIP LOCKED
), attempts AS (
  DELETE FROM treppe.attempt WHERE seq = ANY(ARRAY(SELECT seq FROM locked))
), notes AS (
  DELETE FROM treppe.note WHERE seq = ANY(ARRAY(SELECT seq FROM locked))
)
DELETE FROM treppe.job WHERE seq = ANY(ARRAY(SELECT seq FROM locked)) RETURNING seq
