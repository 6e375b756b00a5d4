-- Lines of history, at most one of a job at a time; a final one ($12) says how long the job's id stays taken.
INSERT INTO treppe.attempt (seq, n, token, event, kind, charged, due_at, started_at, finished_at, worker, error, result, detail,
                            keep_until)
SELECT a.seq, greatest(coalesce((SELECT max(n) FROM treppe.attempt x WHERE x.seq = a.seq), 0) + 1, a.token * 10000),
       a.token, a.event, a.kind, a.charged, a.due_at, a.started_at, c.now, a.worker, a.error, a.result, a.detail,
       CASE WHEN a.final THEN c.now + (SELECT keep FROM treppe.job j WHERE j.seq = a.seq) END
FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c,
     unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::boolean[], $6::double precision[], $7::double precision[],
            $8::bigint[], $9::text[], $10::bytea[], $11::bytea[], $12::boolean[])
     AS a (seq, token, event, kind, charged, due_at, started_at, worker, error, result, detail, final)
