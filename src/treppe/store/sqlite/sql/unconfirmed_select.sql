-- `IN (2, 3)` is said for the partial index: SQLite does not see that 3 is one of them.
SELECT seq, token, due_at, started_at, worker FROM treppe_live
WHERE parked IN (2, 3) AND parked = 3 AND run_at <= ?1 LIMIT ?2
