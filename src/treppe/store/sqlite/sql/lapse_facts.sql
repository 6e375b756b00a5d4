-- Everything is looked at again in the transaction that writes: state, token, worker and lease.
SELECT l.repeat, l.suspect, l.cancel, l.crashes, l.max_crashes, l.queue, l.okey, l.due_at, l.started_at, l.skip_dead, l.claims, l.charged
FROM treppe_live l
WHERE l.seq = ?1 AND l.token = ?2 AND l.worker = ?3 AND l.parked = 4
  AND NOT EXISTS (SELECT 1 FROM treppe_worker w WHERE w.id = l.worker AND w.gone = 0)
