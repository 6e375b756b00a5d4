-- One skip scan: the first due time of each queue and band that has claimable jobs.
WITH RECURSIVE q (queue) AS (
  SELECT min(queue) FROM treppe_live WHERE parked = 0 AND suspect = 0
  UNION ALL
  SELECT (SELECT min(queue) FROM treppe_live WHERE parked = 0 AND suspect = 0 AND queue > q.queue)
  FROM q WHERE q.queue IS NOT NULL
), b (band) AS (VALUES (0), (1), (2), (3))
SELECT q.queue, b.band,
       (SELECT min(run_at) FROM treppe_live WHERE parked = 0 AND suspect = 0 AND queue = q.queue AND band = b.band) AS head
FROM q CROSS JOIN b
WHERE q.queue IS NOT NULL AND head IS NOT NULL
