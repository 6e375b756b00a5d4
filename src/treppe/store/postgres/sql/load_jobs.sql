COPY treppe.job (task, queue, content_type, priority, repeat, attempts, crashes, expires, deadline, keep, skip_dead,
                 created_at, first_due, okey, seq, id, payload) FROM STDIN (FORMAT binary)
