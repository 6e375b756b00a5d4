-- The usual end of many jobs at once, fenced by token and worker: what is not answered did not end here. Rows are looked
-- up one by one and compared by hash, however the planner sees the tables: nothing here may grow with them.
WITH ended AS (
  DELETE FROM treppe.live l
  WHERE l.seq = ANY($1::bigint[]) AND l.running AND NOT l.cancel
    AND ((l.seq, l.token::bigint, l.worker) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]))) IS TRUE
  RETURNING l.seq, l.token, l.task, l.due_at, l.started_at, l.worker, l.okey
), written AS (
  INSERT INTO treppe.attempt (seq, n, token, charged, due_at, started_at, finished_at, worker, keep_until, event, kind, error)
  SELECT e.seq, e.token * 10000::bigint, e.token, false, e.due_at, e.started_at, c.now, e.worker,
         c.now + (SELECT keep FROM treppe.job j WHERE j.seq = e.seq), 'finish', 'ok', ''
  FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c, ended e
), freed AS (
  DELETE FROM treppe.slot WHERE seq = ANY(ARRAY(SELECT seq FROM ended WHERE okey IS NOT NULL)) AND n = 0
), healthy AS (
  INSERT INTO treppe.health (task, ok, tried) SELECT task, count(*), count(*) FROM ended GROUP BY task ORDER BY task
), counted AS (
  INSERT INTO treppe.count (name, n) SELECT 'done', count(*) FROM ended HAVING count(*) > 0
)
SELECT seq FROM ended
