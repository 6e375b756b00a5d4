SELECT f.seq FROM treppe.event e JOIN treppe.job j ON j.event = e.seq JOIN treppe.look f ON f.seq = j.seq
WHERE e.source = $7 AND e.id = $8 AND f.seq < $1
  AND ($3::text IS NULL OR f.queue = $3) AND ($4::text IS NULL OR f.task = $4) AND ($5::text IS NULL OR f.okey = $5)
  AND ($6::text IS NULL OR strpos(f.id, $6) > 0 OR strpos(f.error, $6) > 0)
  AND ($9::text[] IS NULL OR f.state = ANY($9))
ORDER BY f.seq DESC LIMIT $2
