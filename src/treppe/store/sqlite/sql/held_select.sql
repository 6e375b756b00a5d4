SELECT l.seq, j.id, l.token, l.task, l.queue, j.payload, j.content_type, l.okey, l.repeat, l.claims, l.charged, l.attempts,
       l.crashes, l.due_at, l.expires_at, l.deadline_at, l.seen_ok, l.seen_tried, l.seen_at, j.event, l.run_at, l.suspect,
       l.slotted
FROM treppe_live l CROSS JOIN treppe_job j ON j.seq = l.seq
WHERE l.parked = 4 AND l.worker = ?1
ORDER BY l.run_at, l.seq
LIMIT ?2
