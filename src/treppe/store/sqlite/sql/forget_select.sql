SELECT a.seq FROM treppe_attempt a
WHERE a.keep_until <= ?1
  AND NOT EXISTS (SELECT 1 FROM treppe_live l WHERE l.seq = a.seq)
  AND NOT EXISTS (SELECT 1 FROM treppe_dead d WHERE d.seq = a.seq)
ORDER BY a.keep_until LIMIT ?2
