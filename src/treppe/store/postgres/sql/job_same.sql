-- What a second enqueue is compared with; the content by its digest, however large it is.
SELECT j.id, j.seq, j.task, j.queue, sha256(j.payload), j.content_type, e.source, e.id
FROM treppe.job j LEFT JOIN treppe.event e ON e.seq = j.event
WHERE j.id = ANY($1::text[])
