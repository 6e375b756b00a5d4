-- Whoever let its lease run out renews and claims no more. A worker whose claim is under way is left for the next round.
WITH lapsed AS MATERIALIZED (
  SELECT id FROM treppe.worker
  WHERE gone OR until <= (SELECT extract(epoch FROM clock_timestamp())::double precision)
  ORDER BY id FOR UPDATE SKIP LOCKED
), given_up AS (
  UPDATE treppe.worker w SET gone = true FROM lapsed l WHERE w.id = l.id AND NOT w.gone
)
SELECT id FROM lapsed ORDER BY id
