-- Keys whose jobs wait although nobody holds the key: walked in slices, so that nobody is left behind.
SELECT l.seq, l.queue, l.okey,
       NOT EXISTS (SELECT 1 FROM treppe_slot s WHERE s.queue = l.queue AND s.okey = l.okey AND s.n = 0) AS free
FROM treppe_live l WHERE l.parked = 1 AND l.seq > ?1 ORDER BY l.seq LIMIT ?2
