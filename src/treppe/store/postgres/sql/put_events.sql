-- Events, and the jobs of those that are new, in one statement that is a whole transaction. $25 says by its place in the
-- batch which event a job is of (0 = none of these), $26 the number of one that is kept already.
WITH patience AS MATERIALIZED (
  SELECT CASE WHEN $1::text IS NULL THEN '' ELSE set_config('lock_timeout', $1, true) END
), came AS MATERIALIZED (
  SELECT nextval('treppe.event_seq_seq') AS seq, e.*, (SELECT extract(epoch FROM clock_timestamp())) AS now
  FROM patience, unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::bytea[])
       WITH ORDINALITY AS e (source, id, topic, content_type, headers, body, n)
), kept AS (
  INSERT INTO treppe.event (seq, source, id, topic, content_type, headers, body, at)
  SELECT seq, source, id, topic, content_type, headers, body, now FROM came ORDER BY source COLLATE "C", id COLLATE "C", seq
  ON CONFLICT (source, id) DO NOTHING
  RETURNING seq, id
), given AS MATERIALIZED (
  SELECT nextval('treppe.job_seq_seq') AS seq, g.*, (SELECT extract(epoch FROM clock_timestamp())) AS now
  FROM patience, unnest($9::text[], $10::text[], $11::text[], $12::bytea[], $13::text[], $14::text[], $15::bigint[],
       $16::bigint[], $17::bigint[], $18::bigint[], $19::double precision[], $20::double precision[],
       $21::double precision[], $22::double precision[], $23::double precision[], $24::boolean[], $25::bigint[],
       $26::bigint[])
       AS g (id, task, queue, payload, content_type, okey, priority, repeat, attempts, crashes, at, delay, expires,
             deadline, keep, skip_dead, event_n, event)
), fresh AS (
  SELECT g.*, coalesce(g.event, k.seq) AS event_seq
  FROM given g LEFT JOIN came c ON c.n = g.event_n LEFT JOIN kept k ON k.seq = c.seq
  WHERE g.event_n = 0 OR k.seq IS NOT NULL
), placed AS (
  INSERT INTO treppe.job (seq, id, task, queue, payload, content_type, event, okey, priority, repeat, attempts, crashes,
                          first_due, expires, deadline, keep, skip_dead, created_at)
  SELECT seq, id, task, queue, payload, content_type, event_seq, okey, priority, repeat, attempts, crashes,
         coalesce(at, now + delay), expires, deadline, keep, skip_dead, now
  FROM fresh ORDER BY id COLLATE "C", seq
  ON CONFLICT (id) DO NOTHING
  RETURNING seq, id, task, queue, okey, priority, repeat, attempts, crashes, first_due, expires, deadline, skip_dead
), alive AS (
  INSERT INTO treppe.live (seq, queue, task, okey, band, due_at, run_at, repeat, attempts, max_crashes, expires_at,
                           half_at, deadline_at, skip_dead)
  SELECT seq, queue, task, okey, CASE WHEN priority >= 50 THEN 0 WHEN priority > 0 THEN 1 WHEN priority = 0 THEN 2
                                      ELSE 3 END,
         first_due, first_due, repeat, attempts, crashes, first_due + expires, first_due + deadline / 2,
         first_due + deadline, skip_dead
  FROM placed
), counted AS (
  INSERT INTO treppe.count (name, n) SELECT 'accepted', count(*) FROM placed HAVING count(*) > 0
)
SELECT 'job', seq, id, 0 FROM placed
UNION ALL
SELECT 'event', k.seq, k.id, c.n FROM kept k JOIN came c ON c.seq = k.seq
UNION ALL
SELECT '', 0, pg_notify('treppe', $2::text)::text, 0 WHERE $2::text IS NOT NULL AND EXISTS (SELECT FROM placed)
