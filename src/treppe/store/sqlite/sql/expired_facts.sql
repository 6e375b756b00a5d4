SELECT parked, token, queue, okey, due_at, skip_dead, claims, charged, crashes FROM treppe_live
WHERE seq = ?1 AND expires_at <= ?2 AND parked IN (0, 1)
