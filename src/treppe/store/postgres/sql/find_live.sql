SELECT l.seq FROM treppe.live l
WHERE l.seq < $1 AND (CASE WHEN l.running THEN $8::boolean ELSE l.parked = ANY($7::bigint[]) END)
  AND ($3::text IS NULL OR l.queue = $3) AND ($4::text IS NULL OR l.task = $4) AND ($5::text IS NULL OR l.okey = $5)
  AND ($6::text IS NULL OR EXISTS (SELECT FROM treppe.look v WHERE v.seq = l.seq
                                   AND (strpos(v.id, $6) > 0 OR strpos(v.error, $6) > 0)))
ORDER BY l.seq DESC LIMIT $2
