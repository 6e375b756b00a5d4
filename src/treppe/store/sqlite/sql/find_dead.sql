SELECT d.seq FROM treppe_dead d CROSS JOIN treppe_job j ON j.seq = d.seq
WHERE d.seq < :after AND (:ended_after IS NULL OR d.dead_at > :ended_after)
  AND (:queue IS NULL OR j.queue = :queue) AND (:task IS NULL OR j.task = :task) AND (:key IS NULL OR j.okey = :key)
  AND (:text IS NULL OR EXISTS (SELECT 1 FROM treppe_seen v WHERE v.seq = d.seq
                                AND (instr(v.id, :text) > 0 OR instr(v.error, :text) > 0)))
ORDER BY d.seq DESC LIMIT :n
