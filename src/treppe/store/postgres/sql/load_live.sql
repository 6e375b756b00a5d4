COPY treppe.live (queue, task, band, repeat, attempts, max_crashes, skip_dead, due_at, run_at, expires_at, half_at,
                  deadline_at, okey, seq) FROM STDIN (FORMAT binary)
