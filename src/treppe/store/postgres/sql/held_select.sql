SELECT l.seq, l.token, l.task, l.queue, l.okey, l.repeat, l.claims, l.charged, l.attempts, l.crashes, l.due_at, l.expires_at,
       l.deadline_at, l.seen_ok, l.seen_tried, l.seen_at, l.suspect, l.slotted, j.id, j.payload, j.content_type, j.event,
       l.started_at
FROM treppe.live l JOIN treppe.job j ON j.seq = l.seq
WHERE l.running AND l.worker = $1
ORDER BY l.run_at, l.seq
LIMIT $2
