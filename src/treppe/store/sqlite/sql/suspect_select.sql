SELECT l.seq, j.id, l.token, l.task, l.queue, j.payload, j.content_type, l.okey, l.repeat, l.claims, l.charged, l.attempts,
       l.crashes, l.due_at, l.expires_at, l.deadline_at, l.seen_ok, l.seen_tried, l.seen_at, j.event, l.run_at, l.suspect
FROM treppe_live l CROSS JOIN treppe_job j ON j.seq = l.seq
WHERE l.queue = ?3 AND l.parked = 0 AND l.suspect = 1 AND l.run_at <= ?1
  AND l.cancel = 0 AND l.charged < l.attempts AND l.crashes < l.max_crashes AND l.expires_at > ?1
  AND l.task IN (SELECT value FROM json_each(?2))
ORDER BY l.run_at, l.seq
LIMIT 20
