-- Waiting again: later, with what it has learned. A try that never began is not counted ($5).
UPDATE treppe.live l
SET parked = 0, running = false, worker = NULL, run_at = c.now + d.delay, charged = l.charged + d.charged::integer,
    claims = l.claims - d.uncounted::integer, crashes = d.crashes::integer, lapsed = 0, suspect = false, slotted = false,
    seen_ok = coalesce(d.seen_ok, l.seen_ok), seen_tried = coalesce(d.seen_tried, l.seen_tried),
    seen_at = coalesce(d.seen_at, l.seen_at)
FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c,
     unnest($1::bigint[], $2::double precision[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
            $8::double precision[]) AS d (seq, delay, charged, crashes, uncounted, seen_ok, seen_tried, seen_at)
WHERE l.seq = ANY($1) AND l.seq = d.seq
