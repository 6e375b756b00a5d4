-- Jobs that have used up a share of the time to their deadline; nobody is late before half of it.
SELECT l.seq FROM treppe.live l
WHERE l.half_at <= $7 AND l.half_at IS NOT NULL AND $7 - l.due_at >= $8::double precision * (l.deadline_at - l.due_at)
  AND l.seq < $1
  AND ($3::text IS NULL OR l.queue = $3) AND ($4::text IS NULL OR l.task = $4) AND ($5::text IS NULL OR l.okey = $5)
  AND ($6::text IS NULL OR EXISTS (SELECT FROM treppe.look v WHERE v.seq = l.seq
                                   AND (strpos(v.id, $6) > 0 OR strpos(v.error, $6) > 0)))
ORDER BY l.seq DESC LIMIT $2
