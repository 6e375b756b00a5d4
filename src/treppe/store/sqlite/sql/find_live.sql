SELECT l.seq FROM treppe_live l
WHERE l.seq < :after AND l.parked IN (SELECT value FROM json_each(:parked))
  AND (:queue IS NULL OR l.queue = :queue) AND (:task IS NULL OR l.task = :task) AND (:key IS NULL OR l.okey = :key)
  AND (:text IS NULL OR EXISTS (SELECT 1 FROM treppe_seen v WHERE v.seq = l.seq
                                AND (instr(v.id, :text) > 0 OR instr(v.error, :text) > 0)))
ORDER BY l.seq DESC LIMIT :n
