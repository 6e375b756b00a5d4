-- Events that no job needs any more; a job that is about to refer to one has it locked.
WITH old AS MATERIALIZED (
  SELECT seq FROM treppe.event WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE SKIP LOCKED
)
DELETE FROM treppe.event e
WHERE e.seq = ANY(ARRAY(SELECT seq FROM old)) AND (SELECT j.seq FROM treppe.job j WHERE j.event = e.seq LIMIT 1) IS NULL
RETURNING e.seq
