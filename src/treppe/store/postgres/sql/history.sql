SELECT token, event, kind, charged, due_at, started_at, finished_at, worker, error, result, detail
FROM treppe.attempt WHERE seq = $1 ORDER BY n
