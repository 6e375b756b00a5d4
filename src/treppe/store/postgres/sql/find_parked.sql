SELECT l.seq FROM treppe.live l
WHERE l.seq < $1 AND l.parked IN (2, 3) AND l.parked = $7
  AND ($3::text IS NULL OR l.queue = $3) AND ($4::text IS NULL OR l.task = $4) AND ($5::text IS NULL OR l.okey = $5)
  AND ($6::text IS NULL OR EXISTS (SELECT FROM treppe.look v WHERE v.seq = l.seq
                                   AND (strpos(v.id, $6) > 0 OR strpos(v.error, $6) > 0)))
ORDER BY l.seq DESC LIMIT $2
