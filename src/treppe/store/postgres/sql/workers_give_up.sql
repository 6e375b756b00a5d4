-- Whoever let its lease run out renews and claims no more. A worker whose claim is under way is left for the next round.
WITH lapsed AS MATERIALIZED (
  SELECT id FROM treppe.worker
  WHERE gone OR until <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
  ORDER BY id FOR UPDATE SKIP LOCKED
), given_up AS (
  UPDATE treppe.worker SET gone = true WHERE id = ANY(ARRAY(SELECT id FROM lapsed)) AND NOT gone
)
SELECT id FROM lapsed ORDER BY id
