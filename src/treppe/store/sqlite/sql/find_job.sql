SELECT j.seq FROM treppe_seen j
WHERE j.seq < :after
  AND (:queue IS NULL OR j.queue = :queue) AND (:task IS NULL OR j.task = :task) AND (:key IS NULL OR j.okey = :key)
  AND (:text IS NULL OR instr(j.id, :text) > 0 OR instr(j.error, :text) > 0)
  AND (:states IS NULL OR j.state IN (SELECT value FROM json_each(:states)))
ORDER BY j.seq DESC LIMIT :n
