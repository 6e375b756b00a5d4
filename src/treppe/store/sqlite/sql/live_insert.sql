INSERT INTO treppe_live (seq, queue, band, task, due_at, run_at, repeat, attempts, max_crashes, expires_at, half_at, deadline_at, okey,
                         skip_dead)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
