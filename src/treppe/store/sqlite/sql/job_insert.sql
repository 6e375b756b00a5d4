INSERT INTO treppe_job (seq, id, task, queue, payload, content_type, event, okey, priority, repeat, attempts, crashes,
                        first_due, expires, deadline, keep, skip_dead, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
