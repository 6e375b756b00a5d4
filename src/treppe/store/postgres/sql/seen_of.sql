SELECT seq, id, task, queue, okey, priority, repeat, attempts, first_due, deadline, created_at, state, token, claims,
       charged, crashes, due_at, run_at, expires_at, suspect, cancel, ended_at, error, source, event_id, behind
FROM treppe.look WHERE seq = ANY($1::bigint[]) ORDER BY seq DESC
