-- Jobs that lost their slots by a lapse count again, beyond the limit if need be: until there is room nobody else starts.
-- Their numbers lie where no claim looks for a free one.
INSERT INTO treppe.slot (queue, okey, n, seq)
SELECT r.queue, '', 1000000000 + r.seq % 1000000000, r.seq FROM unnest($1::bigint[], $2::text[]) AS r (seq, queue)
ON CONFLICT (queue, okey, n) DO NOTHING
