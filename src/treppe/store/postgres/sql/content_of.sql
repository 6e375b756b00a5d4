SELECT coalesce(e.body, j.payload), coalesce(e.content_type, j.content_type),
       (SELECT result FROM treppe.attempt a WHERE a.seq = j.seq ORDER BY n DESC LIMIT 1)
FROM treppe.job j LEFT JOIN treppe.event e ON e.seq = j.event
WHERE j.seq = $1
