SELECT j.id, j.seq, j.task, j.queue, j.payload, j.content_type, e.source, e.id
FROM treppe_job j LEFT JOIN treppe_event e ON e.seq = j.event
WHERE j.id IN (SELECT value FROM json_each(?))
