-- A slice of the events, as far as they are old; whether each is still used.
SELECT e.seq, EXISTS (SELECT 1 FROM treppe_job j WHERE j.event = e.seq)
FROM (SELECT seq, at FROM treppe_event WHERE seq > ?1 ORDER BY seq LIMIT ?3) e
WHERE e.at <= ?2 ORDER BY e.seq
