-- Unclear (2) or handed over (3): out of everybody's reach until somebody says what happened.
UPDATE treppe.live l
SET parked = d.parked::smallint, running = false, run_at = c.now + d.delay, crashes = d.crashes::integer, lapsed = 0,
    suspect = false, slotted = d.slotted,
    seen_ok = coalesce(d.seen_ok, l.seen_ok), seen_tried = coalesce(d.seen_tried, l.seen_tried),
    seen_at = coalesce(d.seen_at, l.seen_at)
FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c,
     unnest($1::bigint[], $2::bigint[], $3::double precision[], $4::bigint[], $5::boolean[], $6::bigint[], $7::bigint[],
            $8::double precision[]) AS d (seq, parked, delay, crashes, slotted, seen_ok, seen_tried, seen_at)
WHERE l.seq = ANY($1) AND l.seq = d.seq
