-- The beginning of a large put: how long to wait for another transaction, whether one of some ids is taken, the time,
-- and numbers for all jobs as one string.
SELECT set_config('lock_timeout', $1, true),
       EXISTS (SELECT FROM treppe.job WHERE id = ANY ($2::text[])),
       extract(epoch FROM clock_timestamp())::double precision,
       (SELECT string_agg(int8send(nextval('treppe.job_seq_seq')), '') FROM generate_series(1, $3))
