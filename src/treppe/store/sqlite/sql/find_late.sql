-- Jobs that have used up a share of the time to their deadline; nobody is late before half of it.
SELECT l.seq FROM treppe_live l INDEXED BY treppe_live_half
WHERE l.half_at <= :now AND l.half_at IS NOT NULL AND :now - l.due_at >= :late * (l.deadline_at - l.due_at)
  AND l.seq < :after
  AND (:queue IS NULL OR l.queue = :queue) AND (:task IS NULL OR l.task = :task) AND (:key IS NULL OR l.okey = :key)
  AND (:text IS NULL OR EXISTS (SELECT 1 FROM treppe_seen v WHERE v.seq = l.seq
                                AND (instr(v.id, :text) > 0 OR instr(v.error, :text) > 0)))
ORDER BY l.seq DESC LIMIT :n
