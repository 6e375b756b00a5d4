-- The usual end of many jobs at once, from their live rows.
INSERT INTO treppe_attempt (seq, token, event, kind, charged, due_at, started_at, finished_at, worker, error, n, keep_until)
SELECT l.seq, l.token, 'finish', 'ok', 0, l.due_at, l.started_at, ?2, l.worker, '', l.token * ?3, ?2 + j.keep
FROM json_each(?1) f CROSS JOIN treppe_live l ON l.seq = f.value CROSS JOIN treppe_job j ON j.seq = f.value
