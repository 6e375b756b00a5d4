-- The first of a key's line: whoever came first among those that are due, whatever it is doing.
SELECT seq, parked FROM treppe_live
WHERE queue = ?1 AND okey = ?2 AND due_at <= ?3
ORDER BY due_at, seq LIMIT 1
