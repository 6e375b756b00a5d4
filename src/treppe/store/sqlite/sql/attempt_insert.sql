INSERT INTO treppe_attempt (seq, token, event, kind, charged, due_at, started_at, finished_at, worker, error, result, detail,
                            n, keep_until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)
