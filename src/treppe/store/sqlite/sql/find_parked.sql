SELECT l.seq FROM treppe_live l INDEXED BY treppe_live_parked
WHERE l.seq < :after AND l.parked IN (2, 3) AND l.parked = :parked
  AND (:queue IS NULL OR l.queue = :queue) AND (:task IS NULL OR l.task = :task) AND (:key IS NULL OR l.okey = :key)
  AND (:text IS NULL OR EXISTS (SELECT 1 FROM treppe_seen v WHERE v.seq = l.seq
                                AND (instr(v.id, :text) > 0 OR instr(v.error, :text) > 0)))
ORDER BY l.seq DESC LIMIT :n
