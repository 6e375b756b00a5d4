-- Jobs in one statement that is a whole transaction, in the order of their ids, so that no two of them deadlock. What is
-- not answered is a duplicate. $1 limits the wait for another transaction with one of the ids; $2 is who to wake.
WITH patience AS MATERIALIZED (
  SELECT CASE WHEN $1::text IS NULL THEN '' ELSE set_config('lock_timeout', $1, true) END
), given AS MATERIALIZED (
  SELECT nextval('treppe.job_seq_seq') AS seq, g.*, (SELECT extract(epoch FROM clock_timestamp())) AS now
  FROM patience, unnest($3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::text[], $9::bigint[],
       $10::bigint[], $11::bigint[], $12::bigint[], $13::double precision[], $14::double precision[],
       $15::double precision[], $16::double precision[], $17::double precision[], $18::boolean[])
       AS g (id, task, queue, payload, content_type, okey, priority, repeat, attempts, crashes, at, delay, expires,
             deadline, keep, skip_dead)
), placed AS (
  INSERT INTO treppe.job (seq, id, task, queue, payload, content_type, okey, priority, repeat, attempts, crashes,
                          first_due, expires, deadline, keep, skip_dead, created_at)
  SELECT seq, id, task, queue, payload, content_type, okey, priority, repeat, attempts, crashes,
         coalesce(at, now + delay), expires, deadline, keep, skip_dead, now
  FROM given ORDER BY id COLLATE "C", seq
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
SELECT seq, id FROM placed
UNION ALL
SELECT 0, pg_notify('treppe', $2::text)::text WHERE $2::text IS NOT NULL AND EXISTS (SELECT FROM placed)
