SELECT j.seq, j.id, j.task, j.queue, j.okey, j.priority, j.repeat, j.attempts, j.first_due, j.expires, j.deadline, j.created_at,
       l.parked, l.token, l.claims, l.charged, l.crashes, l.due_at, l.run_at, l.deadline_at, l.expires_at, l.suspect, l.cancel,
       d.token, d.claims, d.charged, d.crashes, d.dead_at, d.reason,
       e.source, e.id,
       CASE l.parked WHEN 1 THEN coalesce(
         (SELECT o.id FROM treppe_slot s JOIN treppe_job o ON o.seq = s.seq
          WHERE s.queue = j.queue AND s.okey = j.okey AND s.n = 0),
         (SELECT o.id FROM treppe_live h JOIN treppe_job o ON o.seq = h.seq
          WHERE h.queue = j.queue AND h.okey = j.okey ORDER BY h.due_at, h.seq LIMIT 1)) END,
       a.event, a.token, a.finished_at, a.error, NULL,
       NULL, coalesce(e.content_type, j.content_type)
FROM treppe_dead d CROSS JOIN treppe_job j ON j.seq = d.seq
LEFT JOIN treppe_live l ON l.seq = j.seq
LEFT JOIN treppe_event e ON e.seq = j.event
LEFT JOIN treppe_attempt a ON a.seq = j.seq AND a.n = (SELECT max(n) FROM treppe_attempt x WHERE x.seq = j.seq)
WHERE d.seq < ?1
  AND (?2 IS NULL OR j.queue = ?2) AND (?3 IS NULL OR j.task = ?3) AND (?4 IS NULL OR j.okey = ?4)
  AND (?5 IS NULL OR (e.source = ?5 AND e.id = ?6))
  AND (?7 IS NULL OR instr(j.id, ?7) > 0 OR instr(coalesce(a.error, ''), ?7) > 0) AND (?8 IS NULL OR d.dead_at > ?8)
ORDER BY d.seq DESC LIMIT ?9
