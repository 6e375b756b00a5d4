SELECT e.source, e.id, e.seq, sha256(e.body)
FROM unnest($1::text[], $2::text[]) AS g (source, id) JOIN treppe.event e ON e.source = g.source AND e.id = g.id
