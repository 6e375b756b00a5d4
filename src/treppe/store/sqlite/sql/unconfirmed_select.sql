SELECT seq, token, due_at, started_at, worker FROM treppe_live
WHERE parked = 3 AND run_at <= ?1 LIMIT ?2
