-- One job in one statement that is a whole transaction; no answer if it is a duplicate. As put_jobs does for many.
WITH placed AS (
  INSERT INTO treppe.job (id, task, queue, payload, content_type, okey, priority, repeat, attempts, crashes, first_due,
                          expires, deadline, keep, skip_dead, created_at)
  SELECT $3::text, $4::text, $5::text, $6::bytea, $7::text, $8::text, $9::bigint, $10::bigint, $11::bigint, $12::bigint,
         coalesce($13::double precision, now + $14::double precision), $15::double precision, $16::double precision,
         $17::double precision, $18::boolean, now
  FROM (SELECT CASE WHEN $1::text IS NOT NULL THEN set_config('lock_timeout', $1, true) END,
               extract(epoch FROM clock_timestamp())::double precision AS now) AS patience
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
  INSERT INTO treppe.count (name, n) SELECT 'accepted', 1 FROM placed
)
SELECT seq, id, CASE WHEN $2::text IS NOT NULL THEN pg_notify('treppe', $2)::text END FROM placed
