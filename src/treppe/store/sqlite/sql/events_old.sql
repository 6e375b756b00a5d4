SELECT e.seq, EXISTS (SELECT 1 FROM treppe_job j WHERE j.event = e.seq) FROM treppe_event e
WHERE e.seq > ?1 AND e.at <= ?2 ORDER BY e.seq LIMIT ?3
