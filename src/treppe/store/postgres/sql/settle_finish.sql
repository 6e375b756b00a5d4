-- The usual end of many jobs at once, fenced by token and worker: what is not answered did not end here.
WITH told AS MATERIALIZED (
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS t (seq, token, worker)
), ended AS (
  DELETE FROM treppe.live l USING told t
  WHERE l.seq = t.seq AND l.token = t.token AND l.worker = t.worker AND l.running AND NOT l.cancel
  RETURNING l.seq, l.token, l.task, l.due_at, l.started_at, l.worker
), written AS (
  INSERT INTO treppe.attempt (seq, n, token, charged, due_at, started_at, finished_at, worker, keep_until, event, kind, error)
  SELECT e.seq, e.token * 10000::bigint, e.token, false, e.due_at, e.started_at, c.now, e.worker, c.now + j.keep,
         'finish', 'ok', ''
  FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c, ended e JOIN treppe.job j ON j.seq = e.seq
), healthy AS (
  INSERT INTO treppe.health (task, ok, tried) SELECT task, count(*), count(*) FROM ended GROUP BY task ORDER BY task
), counted AS (
  INSERT INTO treppe.count (name, n) SELECT 'done', count(*) FROM ended HAVING count(*) > 0
)
SELECT seq FROM ended
