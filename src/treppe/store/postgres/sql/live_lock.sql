-- Rows of several jobs are always locked in the order of their numbers.
SELECT seq, parked, token, worker, lapsed, suspect, cancel, running, crashes, claims, charged, okey, slotted, skip_dead, queue,
       due_at, started_at, run_at, expires_at, repeat, max_crashes
FROM treppe.live WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE
