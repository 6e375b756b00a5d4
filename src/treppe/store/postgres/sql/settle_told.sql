-- The same for jobs that have more to say than their live rows know: a result, a detail, another start.
WITH ended AS (
  DELETE FROM treppe.live l
  WHERE l.seq = ANY($1::bigint[]) AND l.running AND NOT l.cancel
    AND ((l.seq, l.token::bigint, l.worker) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]))) IS TRUE
  RETURNING l.seq, l.task, l.okey
), written AS (
  INSERT INTO treppe.attempt (seq, n, token, charged, due_at, started_at, finished_at, worker, keep_until, event, kind, error,
                              result, detail)
  SELECT t.seq, t.token * 10000, t.token, false, t.due_at, t.started_at, c.now, t.worker,
         c.now + (SELECT keep FROM treppe.job j WHERE j.seq = t.seq), 'finish', 'ok', t.error, t.result, t.detail
  FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c,
       unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::double precision[], $5::double precision[], $6::text[], $7::bytea[],
              $8::bytea[]) AS t (seq, token, worker, due_at, started_at, error, result, detail)
  WHERE (t.seq IN (SELECT seq FROM ended)) IS TRUE
), freed AS (
  DELETE FROM treppe.slot WHERE seq = ANY(ARRAY(SELECT seq FROM ended WHERE okey IS NOT NULL)) AND n = 0
), healthy AS (
  INSERT INTO treppe.health (task, ok, tried) SELECT task, count(*), count(*) FROM ended GROUP BY task ORDER BY task
), counted AS (
  INSERT INTO treppe.count (name, n) SELECT 'done', count(*) FROM ended HAVING count(*) > 0
)
SELECT seq FROM ended
