SELECT v.seq FROM treppe_event e CROSS JOIN treppe_job j ON j.event = e.seq CROSS JOIN treppe_seen v ON v.seq = j.seq
WHERE e.source = :source AND e.id = :event AND v.seq < :after
  AND (:queue IS NULL OR v.queue = :queue) AND (:task IS NULL OR v.task = :task) AND (:key IS NULL OR v.okey = :key)
  AND (:text IS NULL OR EXISTS (SELECT 1 FROM treppe_seen v WHERE v.seq = v.seq
                                AND (instr(v.id, :text) > 0 OR instr(v.error, :text) > 0)))
  AND (:states IS NULL OR v.state IN (SELECT value FROM json_each(:states)))
ORDER BY v.seq DESC LIMIT :n
