INSERT INTO treppe.dead (seq, queue, dead_at, reason, token, claims, charged, crashes)
SELECT d.seq, d.queue, extract(epoch FROM clock_timestamp())::double precision, d.reason, d.token, d.claims, d.charged, d.crashes
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
     AS d (seq, queue, reason, token, claims, charged, crashes)
