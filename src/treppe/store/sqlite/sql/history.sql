SELECT token, event, kind, charged, due_at, started_at, finished_at, worker, error, result, detail
FROM treppe_attempt WHERE seq = ? ORDER BY n
