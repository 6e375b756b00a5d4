INSERT INTO treppe_attempt (seq, token, event, kind, charged, due_at, started_at, finished_at, worker, error, result, detail,
                            n, keep_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?8 + (SELECT keep FROM treppe_job WHERE seq = ?1))
