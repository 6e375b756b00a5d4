SELECT coalesce(e.body, j.payload), coalesce(e.content_type, j.content_type),
       (SELECT result FROM treppe_attempt a WHERE a.seq = j.seq ORDER BY n DESC LIMIT 1)
FROM treppe_job j LEFT JOIN treppe_event e ON e.seq = j.event
WHERE j.seq = ?
