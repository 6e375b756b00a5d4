SELECT seq, id, task, queue, okey, priority, repeat, attempts, first_due, deadline, created_at, state, token, claims,
       charged, crashes, due_at, run_at, expires_at, suspect, cancel, ended_at, error, source, event_id, behind
FROM treppe_seen WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq DESC
