-- Retention must not take an event away from the job that is about to refer to it.
SELECT e.source, e.id, e.seq
FROM unnest($1::text[], $2::text[]) AS g (source, id) JOIN treppe.event e ON e.source = g.source AND e.id = g.id
ORDER BY e.seq FOR KEY SHARE OF e
