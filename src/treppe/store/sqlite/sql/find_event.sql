SELECT f.seq FROM treppe_event e CROSS JOIN treppe_job j ON j.event = e.seq CROSS JOIN treppe_seen f ON f.seq = j.seq
WHERE e.source = :source AND e.id = :event AND f.seq < :after
  AND (:queue IS NULL OR f.queue = :queue) AND (:task IS NULL OR f.task = :task) AND (:key IS NULL OR f.okey = :key)
  AND (:text IS NULL OR EXISTS (SELECT 1 FROM treppe_seen v WHERE v.seq = f.seq
                                AND (instr(v.id, :text) > 0 OR instr(v.error, :text) > 0)))
  AND (:states IS NULL OR f.state IN (SELECT value FROM json_each(:states)))
ORDER BY f.seq DESC LIMIT :n
