INSERT INTO treppe_live (seq, queue, band, task, due_at, run_at, token, repeat, attempts, max_crashes, expires_at, half_at, deadline_at, okey,
                         skip_dead)
SELECT seq, queue, CASE WHEN priority >= 50 THEN 0 WHEN priority > 0 THEN 1 WHEN priority = 0 THEN 2 ELSE 3 END,
       task, first_due, ?2, ?3, repeat, attempts, crashes, ?2 + expires, first_due + deadline / 2, first_due + deadline, okey, skip_dead
FROM treppe_job WHERE seq = ?1
