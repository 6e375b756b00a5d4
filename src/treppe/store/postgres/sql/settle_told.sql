-- The same for jobs that have more to say than their live rows know: a result, a detail, another start.
WITH told AS MATERIALIZED (
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::double precision[], $5::text[], $6::bytea[],
                       $7::bytea[]) AS t (seq, token, worker, started_at, error, result, detail)
), ended AS (
  DELETE FROM treppe.live l USING told t
  WHERE l.seq = t.seq AND l.token = t.token AND l.worker = t.worker AND l.running AND NOT l.cancel
  RETURNING l.seq, l.token, l.task, l.due_at, l.worker, t.started_at, t.error, t.result, t.detail
), written AS (
  INSERT INTO treppe.attempt (seq, n, token, charged, due_at, started_at, finished_at, worker, keep_until, event, kind, error,
                              result, detail)
  SELECT e.seq, e.token * 10000::bigint, e.token, false, e.due_at, e.started_at, c.now, e.worker, c.now + j.keep,
         'finish', 'ok', e.error, e.result, e.detail
  FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c, ended e JOIN treppe.job j ON j.seq = e.seq
), healthy AS (
  INSERT INTO treppe.health (task, ok, tried) SELECT task, count(*), count(*) FROM ended GROUP BY task ORDER BY task
), counted AS (
  INSERT INTO treppe.count (name, n) SELECT 'done', count(*) FROM ended HAVING count(*) > 0
)
SELECT seq FROM ended
