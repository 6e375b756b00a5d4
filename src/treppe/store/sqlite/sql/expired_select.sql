SELECT seq, parked, token, queue, okey, due_at, skip_dead, claims, charged, crashes FROM treppe_live
WHERE expires_at <= ?1 AND parked IN (0, 1) LIMIT ?2
