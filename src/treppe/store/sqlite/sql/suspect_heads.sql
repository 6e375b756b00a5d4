-- The queues with suspects of these tasks, and when the first of each may run.
SELECT queue, min(run_at) FROM treppe_live
WHERE parked = 0 AND suspect = 1 AND cancel = 0 AND charged < attempts AND crashes < max_crashes
  AND task IN (SELECT value FROM json_each(?))
GROUP BY queue
