INSERT INTO treppe.live (seq, queue, band, task, due_at, run_at, token, repeat, attempts, max_crashes, expires_at, half_at,
                         deadline_at, okey, skip_dead)
SELECT j.seq, j.queue, CASE WHEN j.priority >= 50 THEN 0 WHEN j.priority > 0 THEN 1 WHEN j.priority = 0 THEN 2 ELSE 3 END,
       j.task, j.first_due, c.now, r.token, j.repeat, j.attempts, j.crashes, c.now + j.expires, j.first_due + j.deadline / 2,
       j.first_due + j.deadline, j.okey, j.skip_dead
FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c,
     unnest($1::bigint[], $2::bigint[]) AS r (seq, token) JOIN treppe.job j ON j.seq = r.seq AND j.seq = ANY($1)
