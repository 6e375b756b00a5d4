SELECT d.seq FROM treppe.dead d JOIN treppe.job j ON j.seq = d.seq
WHERE d.seq < $1 AND ($7::double precision IS NULL OR d.dead_at > $7)
  AND ($3::text IS NULL OR j.queue = $3) AND ($4::text IS NULL OR j.task = $4) AND ($5::text IS NULL OR j.okey = $5)
  AND ($6::text IS NULL OR strpos(j.id, $6) > 0 OR strpos(d.reason, $6) > 0)
ORDER BY d.seq DESC LIMIT $2
