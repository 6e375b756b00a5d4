-- Taken back: token and worker stay, so that the last one who had it may still settle while nobody claims it.
UPDATE treppe.live l
SET parked = d.parked::smallint, running = false, run_at = c.now, crashes = d.crashes::integer, lapsed = d.mark::smallint,
    suspect = d.suspect, slotted = false
FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c,
     unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[]) AS d (seq, parked, crashes, mark, suspect)
WHERE l.seq = ANY($1) AND l.seq = d.seq
