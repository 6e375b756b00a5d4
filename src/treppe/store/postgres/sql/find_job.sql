SELECT j.seq FROM treppe.look j
WHERE j.seq < $1
  AND ($3::text IS NULL OR j.queue = $3) AND ($4::text IS NULL OR j.task = $4) AND ($5::text IS NULL OR j.okey = $5)
  AND ($6::text IS NULL OR strpos(j.id, $6) > 0 OR strpos(j.error, $6) > 0)
  AND ($7::text[] IS NULL OR j.state = ANY($7))
ORDER BY j.seq DESC LIMIT $2
